// The command line: parse, run one verb, print one error line, exit with the code that means it.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "base/version.h"
#include "verb.h"

namespace assay::cli {
namespace {

constexpr const char* kDescription =
    "Assay trains language models and says what every second, byte and dollar of a training run\n"
    "bought, for its own trainer and for anybody's command.";

int report(const base::Error& error) {
  fmt::print(stderr, "assay: {}\n", error.line());
  return static_cast<int>(error.code);
}

void print_version(const Session& session) {
  const base::Version& v = base::version();
  session.print_json(base::Json{{"release", v.release},
                                {"commit", v.commit},
                                {"compiler", v.compiler},
                                {"build_type", v.build_type},
                                {"flags", v.flags},
                                {"sanitizers", v.sanitizers}});
  session.print(fmt::format("assay {} (commit {})\nbuilt {} by {}: {}; sanitizers: {}\n", v.release,
                            v.commit, v.build_type, v.compiler, v.flags, v.sanitizers));
}

// "presets show": the command that was typed, down to the last verb that was understood.
std::string command_path(const CLI::App& app) {
  std::string path;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += (path.empty() ? "" : " ") + at->get_name();
  }
  return path;
}

std::string command_of(const CLI::App& app) {
  const std::string path = command_path(app);
  return path.empty() ? "assay" : "assay " + path;
}

// An argument that no verb took: a misspelled verb or option, or one word too many.
base::Error unexpected_argument(const CLI::App& app, const std::string& argument) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::vector<std::string> names;
  const bool option = argument.starts_with("-");
  for (const CLI::App* verb : command->get_subcommands(nullptr)) {
    if (!option) names.push_back(verb->get_name());
  }
  for (const CLI::Option* known : command->get_options()) {
    for (const std::string& name : known->get_lnames()) {
      if (option) names.push_back("--" + name);
    }
  }
  const bool verb = !option && !names.empty();
  std::string hint = base::suggestion(argument, names);
  if (hint.empty()) hint = "see `" + command_of(app) + " --help`";
  return base::usage_error(
      command_path(app),
      fmt::format("{} '{}'", verb ? "unknown command" : "unexpected argument", argument), hint);
}

int run(int argc, char** argv) {
  Session session;
  CLI::App app(kDescription, "assay");
  app.require_subcommand(0, 1);
  app.allow_extras();  // unexpected_argument() words the complaint better than CLI11
  app.set_help_flag("-h,--help", "print this and exit");
  bool version = false;
  app.add_flag("--version", version, "print version, commit and build flags");
  app.add_flag("--json", session.json, "with --version: as JSON");
  app.footer(
      "Every verb takes --json, --quiet and --help. Exit codes: 0 yes, 1 no or failed,\n"
      "2 inconclusive, 3 environment unfit, 64 usage; a wrapped command's own otherwise.");
  add_presets(app, session);
  add_init(app, session);
  add_completion(app, session);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    return report(
        base::usage_error(command_path(app), error.what(), "see `" + command_of(app) + " --help`"));
  }
  if (const auto extra = app.remaining(true); !extra.empty()) {
    return report(unexpected_argument(app, extra.front()));
  }

  if (version) {
    print_version(session);
    return 0;
  }
  if (!session.action()) {
    fmt::print("{}", app.help());
    return 0;
  }
  const auto outcome = session.action()();
  return outcome ? static_cast<int>(*outcome) : report(outcome.error());
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  const int code = assay::cli::run(argc, argv);
  // A result that did not reach the reader is a failure, whatever the verb thought.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    const auto error = assay::base::system_error("standard output", "cannot write", errno);
    fmt::print(stderr, "assay: {}\n", error.line());
    return static_cast<int>(assay::base::ExitCode::kNo);
  }
  return code;
}
