#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/suggestion.h"
#include "base/text.h"
#include "cli/man_page.h"

namespace assay::cli {
namespace {

// The verb that a CLI11 command was built from.
using Built = std::map<const CLI::App*, const Verb*>;

// CLI11 collects values option by option; the order between options is known after parsing.
void fill_ordered(const CLI::App& app, const Verb& verb) {
  std::map<const CLI::Option*, std::size_t> taken;
  for (const CLI::Option* given : app.parse_order()) {
    for (const Option& listed : verb.options) {
      const auto* target = std::get_if<std::vector<OrderedValue>*>(&listed.target);
      if (target == nullptr || !given->check_name(listed.names().front())) continue;
      (*target)->push_back({listed.names().front(), given->results().at(taken[given]++)});
    }
  }
}

void add_common(CLI::App& app, Session& session) {
  app.set_help_flag("-h,--help", "print this and exit");
  app.add_flag("--json", session.json, "print the same facts as JSON");
  app.add_flag("-q,--quiet", session.quiet, "print nothing but errors (and --json)");
  // unexpected_argument() has a better message for what is left over than CLI11.
  app.allow_extras();
}

void add_argument(CLI::App& app, const Argument& argument) {
  CLI::Option* option = argument.values != nullptr
                            ? app.add_option(argument.name, *argument.values, argument.help)
                            : app.add_option(argument.name, *argument.value, argument.help);
  option->required(argument.required)->type_name("");
}

void add_option(CLI::App& app, const Option& listed) {
  if (bool* const* flag = std::get_if<bool*>(&listed.target)) {
    app.add_flag(listed.name, **flag, listed.help_text());
  } else if (std::string* const* one = std::get_if<std::string*>(&listed.target)) {
    CLI::Option* option = app.add_option(listed.name, **one, listed.help_text());
    option->take_last()->type_name(listed.placeholder);
    // Without a value is how a default is chosen, so nothing is not a name.
    if (listed.placeholder == "NAME") {
      option->check([](const std::string& value) {
        return value.empty() ? std::string("needs a name") : std::string();
      });
    }
  } else if (std::holds_alternative<std::vector<OrderedValue>*>(listed.target)) {
    app.add_option(listed.name, CLI::callback_t([](const CLI::results_t&) { return true; }),
                   listed.help_text())
        ->take_all()
        ->allow_extra_args(false)
        ->type_name(listed.placeholder)
        ->option_text(listed.placeholder);  // CLI11 adds dots to a type name
  } else {
    app.add_option(listed.name, *std::get<std::vector<std::string>*>(listed.target),
                   listed.help_text())
        ->take_all()
        ->allow_extra_args(false)
        ->type_name(listed.placeholder)
        ->option_text(listed.placeholder);  // CLI11 adds dots to a type name
  }
}

void build(CLI::App& app, const Verb& verb, Session& session, Built& built) {
  built[&app] = &verb;
  add_common(app, session);
  for (const Argument& argument : verb.arguments) add_argument(app, argument);
  for (const Option& listed : verb.options) add_option(app, listed);
  // Only for the help: CLI11 would look for options inside the wrapped command.
  if (verb.wrapped.arguments != nullptr) {
    app.add_option(verb.wrapped.name, *verb.wrapped.arguments, verb.wrapped.help)->type_name("");
  }
  if (!verb.verbs.empty()) app.require_subcommand(0, 1);
  for (const Verb& child : verb.verbs) {
    CLI::App& command = *app.add_subcommand(child.name, child.description);
    // Without a group, CLI11 gives it the one that the verb above is listed under.
    command.group(child.group.empty() ? "Verbs" : child.group);
    build(command, child, session, built);
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

// "presets show": the verbs that were recognised, without the program's name.
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

// For an argument that no verb takes: a misspelled verb or option, or one argument too many.
base::Error unexpected_argument(const CLI::App& app, const Verb& verb,
                                const std::string& argument) {
  const bool is_option = argument.starts_with("-");
  const bool is_verb = !is_option && !verb.verbs.empty();
  std::vector<std::string> names;
  if (is_option) {
    names.assign(kCommonFlags.begin(), kCommonFlags.end());
    if (path_of(app).empty()) names.emplace_back("--version");
    for (const Option& option : verb.options) {
      for (const std::string& name : option.names()) names.push_back(name);
    }
  } else {
    for (const Verb& child : verb.verbs) names.push_back(child.name);
  }
  std::string hint = base::suggestion(argument, names);
  if (hint.empty()) hint = see_help(app);
  return base::usage_error(
      path_of(app),
      fmt::format("{} '{}'", is_verb ? "unknown command" : "unexpected argument", argument), hint);
}

// Whether this argument is an option whose value is the next argument.
bool takes_next(const Verb& verb, const std::string& argument) {
  return std::any_of(verb.options.begin(), verb.options.end(), [&](const Option& option) {
    const auto names = option.names();
    return !option.is_flag() && std::find(names.begin(), names.end(), argument) != names.end();
  });
}

// Whether this verb or one below it has an option of that name with a value.
bool has_value_option(const Verb& verb, const std::string& name) {
  return takes_next(verb, name) ||
         std::any_of(verb.verbs.begin(), verb.verbs.end(),
                     [&](const Verb& child) { return has_value_option(child, name); });
}

// Moves the wrapped command's arguments out of `arguments`; CLI11 parses what is left.
void split_wrapped(const Verb& root, std::vector<std::string>& arguments) {
  const Verb* verb = &root;
  std::size_t at = 0;
  for (; at < arguments.size() && verb->wrapped.arguments == nullptr; ++at) {
    if (arguments[at].starts_with("-")) continue;
    const auto child = std::find_if(verb->verbs.begin(), verb->verbs.end(),
                                    [&](const Verb& one) { return one.name == arguments[at]; });
    if (child == verb->verbs.end()) return;
    verb = &*child;
  }
  if (verb->wrapped.arguments == nullptr) return;
  std::vector<std::string>& wrapped = *verb->wrapped.arguments;
  std::vector<std::string> ours(arguments.begin(),
                                arguments.begin() + static_cast<std::ptrdiff_t>(at));
  while (at < arguments.size()) {
    const std::string& argument = arguments[at++];
    const bool option = argument.size() > 1 && argument.front() == '-';
    if (argument != "--" && option) {
      ours.push_back(argument);
      if (takes_next(*verb, argument) && at < arguments.size()) ours.push_back(arguments[at++]);
    } else if (verb->wrapped.stage != nullptr && verb->wrapped.stage->empty() &&
               argument.starts_with("@")) {
      *verb->wrapped.stage = argument;
    } else {
      if (argument != "--") --at;
      wrapped.insert(wrapped.end(), arguments.begin() + static_cast<std::ptrdiff_t>(at),
                     arguments.end());
      break;
    }
  }
  arguments = std::move(ours);
}

// "help VERB" is "VERB --help".
base::Result<void> replace_help(const Verb& root, std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "help") return {};
  arguments.erase(arguments.begin());
  const Verb* verb = &root;
  for (const std::string& argument : arguments) {
    if (argument.starts_with("-")) continue;
    std::vector<std::string> names;
    for (const Verb& child : verb->verbs) names.push_back(child.name);
    const auto found = std::find(names.begin(), names.end(), argument);
    if (found == names.end()) {
      const std::string hint = base::suggestion(argument, names);
      return base::fail(base::usage_error("help", fmt::format("unknown command '{}'", argument),
                                          hint.empty() ? "see `assay --help`" : hint));
    }
    verb = &verb->verbs[static_cast<std::size_t>(found - names.begin())];
  }
  arguments.emplace_back("--help");
  return {};
}

// CLI11 separates the last group of options from what follows by two empty lines.
std::string help_of(const CLI::App& app) {
  std::string text = app.help();
  for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

// CLI11 takes the next argument as the value of "--name=": the empty value becomes an argument.
void split_empty_values(const Verb& verb, std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with("--") || !arguments[i].ends_with("=")) continue;
    const std::string name = arguments[i].substr(0, arguments[i].size() - 1);
    if (!has_value_option(verb, name)) continue;
    arguments[i] = name;
    arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, "");
  }
}

std::string message_of(const CLI::ParseError& error) {
  std::string text = error.what();
  // "--format: 1 required TEXT missing"
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return text.substr(0, text.find(':')) + " needs a value";
  }
  return text;
}

}  // namespace

base::Result<Request> parse_command_line(const Verb& root, Session& session, int argc,
                                         char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  ASSAY_TRY_VOID(replace_help(root, arguments));
  split_wrapped(root, arguments);
  split_empty_values(root, arguments);
  CLI::App app(root.description, root.name);
  Built built;
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  build(app, root, session, built);
  bool version = false;
  app.add_flag("--version", version, "print version, commit and build flags");
  bool man_page = false;
  app.add_flag("--man-page", man_page)->group("");  // hidden: for `make install`
  app.footer(
      "`assay help VERB` shows a verb's arguments. Every verb takes --json, --quiet and "
      "--help.\nExit codes: 0 yes, 1 no or failed, 2 "
      "inconclusive,\n3 unsuitable environment, 64 usage error; `run` returns the exit code of its "
      "command.");

  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return ShowHelp{help_of(app)};
  } catch (const CLI::ParseError& error) {
    return base::fail(base::usage_error(path_of(app), message_of(error), see_help(app)));
  }
  const Verb& verb = *built.at(&deepest(app));
  fill_ordered(deepest(app), verb);
  std::vector<std::string> extra = app.remaining(true);
  std::erase(extra, "--");  // ends the options; split_wrapped() took what follows it
  if (!extra.empty()) return base::fail(unexpected_argument(app, verb, extra.front()));
  if (version) return ShowVersion{};
  if (man_page) return ShowHelp{man_page_of(root)};
  if (verb.action) return RunVerb{&verb};
  // CLI11 drops arguments after a leading "--": report them.
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("-") && &verb == &root) {
      return base::fail(unexpected_argument(app, verb, argument));
    }
  }
  return ShowHelp{help_of(app)};
}

}  // namespace assay::cli
