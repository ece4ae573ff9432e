#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/suggestion.h"
#include "base/text.h"

namespace assay::cli {
namespace {

// Which verb a command of CLI11 was made from.
using Built = std::map<const CLI::App*, const Verb*>;

// CLI11 hands out values option by option; the order between options is known afterwards.
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
  // What is left over is worded by unexpected_argument(), better than CLI11 does.
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
    app.add_flag(listed.name, **flag, listed.help);
  } else if (std::string* const* one = std::get_if<std::string*>(&listed.target)) {
    app.add_option(listed.name, **one, listed.help)->take_last()->type_name(listed.placeholder);
  } else if (std::holds_alternative<std::vector<OrderedValue>*>(listed.target)) {
    app.add_option(listed.name, CLI::callback_t([](const CLI::results_t&) { return true; }),
                   listed.help)
        ->take_all()
        ->allow_extra_args(false)
        ->type_name(listed.placeholder);
  } else {
    app.add_option(listed.name, *std::get<std::vector<std::string>*>(listed.target), listed.help)
        ->take_all()
        ->allow_extra_args(false)
        ->type_name(listed.placeholder);
  }
}

void build(CLI::App& app, const Verb& verb, Session& session, Built& built) {
  built[&app] = &verb;
  add_common(app, session);
  for (const Argument& argument : verb.arguments) add_argument(app, argument);
  for (const Option& listed : verb.options) add_option(app, listed);
  // Never filled by CLI11, which would look for options in it; here it is for the help.
  if (verb.rest.words != nullptr) {
    app.add_option(verb.rest.name, *verb.rest.words, verb.rest.help)->type_name("");
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

// Whether a word before the split is an option whose value is the next word.
bool takes_next(const Verb& verb, const std::string& word) {
  return std::any_of(verb.options.begin(), verb.options.end(), [&](const Option& option) {
    const auto names = option.names();
    return !option.is_flag() && std::find(names.begin(), names.end(), word) != names.end();
  });
}

// Takes the words that belong to another command away from ours. The rest is CLI11's.
void split_rest(const Verb& root, std::vector<std::string>& words) {
  const Verb* verb = &root;
  std::size_t at = 0;
  for (; at < words.size() && verb->rest.words == nullptr; ++at) {
    if (words[at].starts_with("-")) continue;
    const auto child = std::find_if(verb->verbs.begin(), verb->verbs.end(),
                                    [&](const Verb& one) { return one.name == words[at]; });
    if (child == verb->verbs.end()) return;
    verb = &*child;
  }
  if (verb->rest.words == nullptr) return;
  std::vector<std::string>& rest = *verb->rest.words;
  std::vector<std::string> ours(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
  while (at < words.size()) {
    const std::string& word = words[at++];
    const bool option = word.size() > 1 && word.front() == '-';
    if (word != "--" && option) {
      ours.push_back(word);
      if (takes_next(*verb, word) && at < words.size()) ours.push_back(words[at++]);
    } else if (verb->rest.step != nullptr && verb->rest.step->empty() && word.starts_with("@")) {
      *verb->rest.step = word;
    } else {
      if (word != "--") --at;
      rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
      break;
    }
  }
  words = std::move(ours);
}

std::string wording(const CLI::ParseError& error) {
  const std::string text = error.what();
  // "--format: 1 required TEXT missing"
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return text.substr(0, text.find(':')) + " needs a value";
  }
  return text;
}

}  // namespace

base::Result<Request> parse_command_line(const Verb& root, Session& session, int argc,
                                         char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  split_rest(root, words);
  CLI::App app(root.description, root.name);
  Built built;
  build(app, root, session, built);
  bool version = false;
  app.add_flag("--version", version, "print version, commit and build flags");
  app.footer(
      "Every verb takes --json, --quiet and --help; run's output is its command's. Exit codes: 0 "
      "yes, 1 no or failed,\n"
      "2 inconclusive, 3 environment unfit, 64 usage; a wrapped command's own otherwise.");

  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    return ShowHelp{app.help()};
  } catch (const CLI::ParseError& error) {
    return base::fail(base::usage_error(path_of(app), wording(error), see_help(app)));
  }
  const Verb& verb = *built.at(&deepest(app));
  fill_ordered(deepest(app), verb);
  std::vector<std::string> extra = app.remaining(true);
  std::erase(extra, "--");  // ends the options; what follows it has been taken already
  if (!extra.empty()) return base::fail(unexpected_argument(app, verb, extra.front()));
  if (version) return ShowVersion{};
  if (verb.action) return RunVerb{&verb};
  // CLI11 swallows words after a leading "--"; they asked for something all the same.
  for (const std::string& word : words) {
    if (!word.starts_with("-") && &verb == &root) {
      return base::fail(unexpected_argument(app, verb, word));
    }
  }
  return ShowHelp{app.help()};
}

}  // namespace assay::cli
