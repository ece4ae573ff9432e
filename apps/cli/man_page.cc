#include "cli/man_page.h"

#include <fmt/format.h>

#include "base/version.h"

namespace assay::cli {
namespace {

constexpr const char* kFiles =
    ".SH FILES\n"
    ".TP\n\\fI.assay/assay.db\\fR\nthe project's store, in its folder or one above; `assay init` "
    "makes it\n"
    ".TP\n\\fI.assay/compare/\\fR, \\fI.assay/bench/\\fR\nexperiments and suites that were run "
    "without \\-o\n"
    ".TP\n\\fIruns/JOB/\\fR\ncheckpoints and metrics of `assay train JOB`\n"
    ".TP\n\\fIPREFIX/share/doc/assay/\\fR\nthe documentation, where `make install` put it\n";
constexpr const char* kEnvironment =
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBASSAY_LOG\\fR\ndebug, info, warn (default), error or off: what is logged on standard "
    "error\n"
    ".TP\n\\fBASSAY_LOG_FORMAT\\fR\njson: each logged line is a JSON object\n"
    ".TP\n\\fBASSAY_GPU\\fR\n0: do not count the GPU work of a command\n"
    ".TP\n\\fBTMPDIR\\fR\nfolder for temporary files\n"
    ".TP\n\\fBXDG_CACHE_HOME\\fR\nfolder of caches, such as tuned GPU algorithms\n";

// Text as troff prints it: backslashes and hyphens are escaped, and a line cannot start a request.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool line_start = out.empty() || out.back() == '\n';
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

void add_option(std::string& page, const Option& option) {
  std::string names;
  for (const std::string& name : option.names()) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", escaped(name));
  }
  if (!option.is_flag()) names += fmt::format(" \\fI{}\\fR", escaped(option.placeholder));
  page += fmt::format(".TP\n{}\n{}\n", names, escaped(option.help_text()));
}

void add_verb(std::string& page, const Verb& verb, const std::string& path) {
  std::string usage = fmt::format("\\fB{}\\fR", escaped(path));
  if (!verb.options.empty()) usage += " [OPTIONS]";
  for (const Argument& argument : verb.arguments) {
    const std::string name =
        fmt::format("\\fI{}\\fR{}", escaped(argument.name), argument.values == nullptr ? "" : "…");
    usage += argument.required ? " " + name : " [" + name + "]";
  }
  if (verb.wrapped.arguments != nullptr) {
    usage += fmt::format(" [\\-\\-] \\fI{}\\fR…", escaped(verb.wrapped.name));
  }
  if (verb.action) {
    page += fmt::format(".SS {}\n{}\n.PP\n{}\n", escaped(path), escaped(verb.description), usage);
    for (const Argument& argument : verb.arguments) {
      page += fmt::format(".TP\n\\fI{}\\fR\n{}\n", escaped(argument.name), escaped(argument.help));
    }
    for (const Option& option : verb.options) add_option(page, option);
    if (!verb.examples.empty()) {
      page += ".PP\nExamples:\n.PP\n.nf\n";
      for (const std::string& example : verb.examples) page += "  " + escaped(example) + "\n";
      page += ".fi\n";
    }
  }
  for (const Verb& child : verb.verbs) add_verb(page, child, path + " " + child.name);
}

}  // namespace

std::string man_page_of(const Verb& root) {
  std::string page = fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n", root.name,
                                 root.name, base::version().release);
  page += fmt::format(
      ".SH NAME\n{} \\- trains language models and accounts for every second, byte "
      "and dollar of a run\n",
      root.name);
  page += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR \\fIVERB\\fR [OPTIONS]\n", root.name);
  page += fmt::format(".SH DESCRIPTION\n{}\n", escaped(root.description));
  page +=
      ".SH OPTIONS\nEvery verb takes:\n"
      ".TP\n\\fB\\-\\-json\\fR\nprint the same facts as JSON\n"
      ".TP\n\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR\nprint nothing but errors (and \\-\\-json)\n"
      ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprint help and exit\n";
  page += fmt::format(
      ".PP\nWithout a verb:\n"
      ".TP\n\\fB\\-\\-version\\fR\nprint version, commit, compiler and its flags\n"
      ".TP\n\\fB{} help\\fR [\\fIVERB\\fR]\nprint help, as \\-\\-help does\n",
      root.name);
  std::string group;
  for (const Verb& verb : root.verbs) {
    if (verb.group != group) {
      group = verb.group;
      page += fmt::format(".SH {}\n", escaped(group));
    }
    add_verb(page, verb, root.name + " " + verb.name);
  }
  page +=
      ".SH EXIT STATUS\n0 yes; 1 no or failed; 2 inconclusive; 3 unsuitable environment; 64 usage "
      "error. `assay run` returns its command's exit status.\n";
  page += kFiles;
  page += kEnvironment;
  return page;
}

}  // namespace assay::cli
