#include "command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "base/text.h"

namespace assay::cli {
namespace {

// Which verb a command of CLI11 was made from.
using Built = std::map<const CLI::App*, const Verb*>;

void add_common(CLI::App& app, Session& session) {
  app.set_help_flag("-h,--help", "print this and exit");
  app.add_flag("--json", session.json, "print the same facts as JSON");
  app.add_flag("-q,--quiet", session.quiet, "print nothing but errors (and --json)");
  // What is left over is worded by unexpected_argument(), better than CLI11 does.
  app.allow_extras();
}

void build(CLI::App& app, const Verb& verb, Session& session, Built& built) {
  built[&app] = &verb;
  add_common(app, session);
  for (const Argument& argument : verb.arguments) {
    CLI::Option* option = app.add_option(argument.name, *argument.value, argument.help);
    option->required(argument.required)->type_name("");
  }
  for (const Option& listed : verb.options) {
    app.add_option(listed.name, *listed.values, listed.help)
        ->take_all()
        ->allow_extra_args(false)
        ->type_name("KEY=VALUE");
  }
  if (!verb.verbs.empty()) app.require_subcommand(0, 1);
  for (const Verb& child : verb.verbs) {
    build(*app.add_subcommand(child.name, child.description), child, session, built);
  }
  if (!verb.examples.empty()) {
    app.footer(fmt::format("Examples:\n  {}", fmt::join(verb.examples, "\n  ")));
  }
}

const CLI::App& deepest(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

// "presets show": what was understood, without the program's own name.
std::string path_of(const CLI::App& app) {
  std::string path;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += (path.empty() ? "" : " ") + at->get_name();
  }
  return path;
}

std::string see_help(const CLI::App& app) {
  const std::string path = path_of(app);
  return fmt::format("see `assay{}{} --help`", path.empty() ? "" : " ", path);
}

// An argument that no verb took: a misspelled verb or option, or one word too many.
base::Error unexpected_argument(const CLI::App& app, const Verb& verb,
                                const std::string& argument) {
  const bool is_option = argument.starts_with("-");
  const bool is_verb = !is_option && !verb.verbs.empty();
  std::vector<std::string> names;
  if (is_option) {
    names.assign(kCommonFlags.begin(), kCommonFlags.end());
    if (path_of(app).empty()) names.emplace_back("--version");
    for (const Option& option : verb.options) names.push_back(option.name);
  } else {
    for (const Verb& child : verb.verbs) names.push_back(child.name);
  }
  std::string hint = base::suggestion(argument, names);
  if (hint.empty()) hint = see_help(app);
  return base::usage_error(
      path_of(app),
      fmt::format("{} '{}'", is_verb ? "unknown command" : "unexpected argument", argument), hint);
}

}  // namespace

base::Result<Request> parse_command_line(const Verb& root, Session& session, int argc,
                                         char** argv) {
  CLI::App app(root.description, root.name);
  Built built;
  build(app, root, session, built);
  bool version = false;
  app.add_flag("--version", version, "print version, commit and build flags");
  app.footer(
      "Every verb takes --json, --quiet and --help. Exit codes: 0 yes, 1 no or failed,\n"
      "2 inconclusive, 3 environment unfit, 64 usage; a wrapped command's own otherwise.");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return ShowHelp{app.help()};
  } catch (const CLI::ParseError& error) {
    return base::fail(base::usage_error(path_of(app), error.what(), see_help(app)));
  }
  const Verb& verb = *built.at(&deepest(app));
  std::vector<std::string> extra = app.remaining(true);
  std::erase(extra, "--");  // ends the options; what follows it has been taken already
  if (!extra.empty()) return base::fail(unexpected_argument(app, verb, extra.front()));
  if (version) return ShowVersion{};
  if (verb.action) return RunVerb{&verb};
  // CLI11 swallows words after a leading "--"; they asked for something all the same.
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] != '-' && &verb == &root) {
      return base::fail(unexpected_argument(app, verb, argv[i]));
    }
  }
  return ShowHelp{app.help()};
}

}  // namespace assay::cli
