// assay completion bash|zsh: a completion script made from the verbs' own descriptions, so that it
// never offers what is not there.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "assay/verbs.h"
#include "base/text.h"

namespace assay::cli {
namespace {

std::vector<std::string> shells() {
  return {"bash", "zsh"};
}

// What may follow one command path ("presets show").
struct Place {
  std::string path;
  std::vector<std::string> words;
  std::vector<Option> options;
  bool files = false;
};

void collect(const Verb& verb, const std::string& path, std::vector<Place>& places) {
  Place place{path, {}, verb.options, false};
  for (const Verb& child : verb.verbs) place.words.push_back(child.name);
  for (const Argument& argument : verb.arguments) {
    const auto words = argument.candidates ? argument.candidates() : std::vector<std::string>{};
    place.words.insert(place.words.end(), words.begin(), words.end());
    place.files = place.files || argument.files;
  }
  for (const Option& option : verb.options) {
    for (const std::string& name : option.names()) place.words.push_back(name);
  }
  place.files = place.files || verb.wrapped.arguments != nullptr;
  for (const char* common : kCommonFlags) place.words.emplace_back(common);
  if (path.empty()) place.words.push_back("--version");
  places.push_back(std::move(place));
  for (const Verb& child : verb.verbs) {
    collect(child, path.empty() ? child.name : path + " " + child.name, places);
  }
}

// Arms of a shell `case` over "command path|word before the cursor"; bash and zsh read them alike.
std::string case_arms(const std::vector<Place>& places) {
  std::string arms;
  for (const Place& place : places) {
    for (const Option& option : place.options) {
      if (option.is_flag()) continue;
      const auto words = option.candidates ? option.candidates() : std::vector<std::string>{};
      // A word that ends in "=" wants its value at once.
      const bool open = !words.empty() && words.front().ends_with("=");
      for (const std::string& name : option.names()) {
        arms += fmt::format("    '{}|{}') offer='{}'; open={}; files={} ;;\n", place.path, name,
                            fmt::join(words, " "), open ? 1 : 0, option.files ? 1 : 0);
      }
    }
  }
  for (const Place& place : places) {
    arms += fmt::format("    '{}|'*) offer='{}'; files={} ;;\n", place.path,
                        fmt::join(place.words, " "), place.files ? 1 : 0);
  }
  return arms;
}

std::string command_paths(const std::vector<Place>& places) {
  std::vector<std::string> paths;
  for (const Place& place : places) {
    if (!place.path.empty()) paths.push_back("'" + place.path + "'");
  }
  return fmt::format("{}", fmt::join(paths, " | "));
}

// Both walk the words typed so far down to a command path, then offer what fits there.
constexpr const char* kBash = R"(# bash completion for assay; use: source <(assay completion bash)
_assay() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command='' offer='' open=0 files=0 word i IFS=$' \t\n'
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    case "${{command:+$command }}$word" in
      {paths}) command="${{command:+$command }}$word" ;;
    esac
  done
  case "$command|$before" in
{arms}  esac
  ((open)) && compopt -o nospace
  ((files)) && compopt -o default
  COMPREPLY=($(compgen -W "$offer" -- "$current"))
}}
complete -F _assay assay
)";

constexpr const char* kZsh = R"(#compdef assay
# zsh completion for assay; use: source <(assay completion zsh)
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit; }}
_assay() {{
  local command='' offer='' word
  local -i i open=0 files=0
  for ((i = 2; i < CURRENT; i++)); do
    word="${{words[i]}}"
    case "${{command:+$command }}$word" in
      {paths}) command="${{command:+$command }}$word" ;;
    esac
  done
  case "$command|${{words[CURRENT-1]}}" in
{arms}  esac
  if ((open)); then
    compadd -S '' -- ${{=offer}}
  else
    compadd -- ${{=offer}}
  fi
  ((files)) && _files
  return 0
}}
# As a file in fpath this runs in place of the function it defines.
if [[ "${{funcstack[1]}}" == _assay ]]; then _assay "$@"; else compdef _assay assay; fi
)";

std::string script(const Verb& root, bool zsh) {
  std::vector<Place> places;
  collect(root, "", places);
  return fmt::format(fmt::runtime(zsh ? kZsh : kBash), fmt::arg("paths", command_paths(places)),
                     fmt::arg("arms", case_arms(places)));
}

base::Result<base::ExitCode> print_script(const Session& session, const Verb& root,
                                          const std::string& shell) {
  if (shell != "bash" && shell != "zsh") {
    return base::fail(base::usage_error("completion", fmt::format("unknown shell '{}'", shell),
                                        base::suggestion(shell, shells())));
  }
  const std::string text = script(root, shell == "zsh");
  session.print(text);
  session.print_json(base::Json{{"shell", shell}, {"script", text}});
  return base::ExitCode::kYes;
}

}  // namespace

Verb completion_verb(const Session& session, const Verb& root) {
  const auto shell = std::make_shared<std::string>();
  return {.name = "completion",
          .description = "print a completion script for your shell",
          .examples = {"source <(assay completion bash)", "source <(assay completion zsh)"},
          .arguments = {{"SHELL", "bash or zsh", shell.get(), true, shells}},
          .action = [&session, &root, shell] { return print_script(session, root, *shell); }};
}

}  // namespace assay::cli
