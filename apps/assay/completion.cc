// assay completion bash|zsh: a completion script made from the command line's own description, so
// that it never names a verb or an option that is not there.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "spec/presets.h"
#include "spec/schema.h"
#include "verb.h"

namespace assay::cli {
namespace {

// For each command path ("presets show"), the words that may follow it.
using Words = std::map<std::string, std::vector<std::string>>;

void collect(const CLI::App& command, const std::string& path, Words& words) {
  std::vector<std::string>& here = words[path];
  for (const CLI::App* verb : command.get_subcommands(nullptr)) {
    here.push_back(verb->get_name());
    collect(*verb, path.empty() ? verb->get_name() : path + " " + verb->get_name(), words);
  }
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) here.push_back("--" + name);
  }
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// The arms of a shell `case` over the command path; the same text serves bash and zsh.
std::string case_arms(const Words& words) {
  std::string arms;
  for (const auto& [path, follow] : words) {
    arms += fmt::format("    '{}') follow='{}' ;;\n", path, joined(follow));
  }
  return arms;
}

std::string set_keys() {
  std::vector<std::string> keys;
  for (const spec::KeyDoc& key : spec::all_keys()) {
    if (!key.path.starts_with("price")) keys.push_back(key.path + "=");
  }
  return joined(keys);
}

// Walks the words typed so far down to a command path, then offers what fits there.
constexpr const char* kBash = R"(# bash completion for assay; use: source <(assay completion bash)
_assay() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command='' follow='' word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    case "${{command:+$command }}$word" in
      {paths}) command="${{command:+$command }}$word" ;;
    esac
  done
  if [[ "$previous" == --set ]]; then
    COMPREPLY=($(compgen -W '{keys}' -- "$current"))
    compopt -o nospace
    return
  fi
  case "$command" in
{arms}  esac
  case "$command" in
    'presets show') follow+=' {presets}'; compopt -o default ;;
    'presets list') follow+=' {kinds}' ;;
    'presets check' | 'init') compopt -o default ;;
    'completion') follow+=' bash zsh' ;;
  esac
  COMPREPLY=($(compgen -W "$follow" -- "$current"))
}}
complete -F _assay assay
)";

constexpr const char* kZsh = R"(#compdef assay
# zsh completion for assay; use: source <(assay completion zsh)
_assay() {{
  local command='' follow='' word files=0
  local -i i
  for ((i = 2; i < CURRENT; i++)); do
    word="${{words[i]}}"
    case "${{command:+$command }}$word" in
      {paths}) command="${{command:+$command }}$word" ;;
    esac
  done
  if [[ "${{words[CURRENT-1]}}" == --set ]]; then
    compadd -S '' -- ${{=:-{keys}}}
    return
  fi
  case "$command" in
{arms}  esac
  case "$command" in
    'presets show') follow+=' {presets}'; files=1 ;;
    'presets list') follow+=' {kinds}' ;;
    'presets check' | 'init') files=1 ;;
    'completion') follow+=' bash zsh' ;;
  esac
  compadd -- ${{=follow}}
  (( files )) && _files
  return 0
}}
compdef _assay assay
)";

std::string script(const CLI::App& app, bool zsh) {
  Words words;
  collect(app, "", words);
  std::vector<std::string> paths;
  for (const auto& entry : words) {
    if (!entry.first.empty()) paths.push_back("'" + entry.first + "'");
  }
  return fmt::format(fmt::runtime(zsh ? kZsh : kBash),
                     fmt::arg("paths", fmt::format("{}", fmt::join(paths, " | "))),
                     fmt::arg("arms", case_arms(words)), fmt::arg("keys", set_keys()),
                     fmt::arg("presets", joined(spec::preset_names())),
                     fmt::arg("kinds", "models jobs clusters devices layouts prices"));
}

}  // namespace

void add_completion(CLI::App& app, Session& session) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* verb = add_verb(app, session, "completion", "print a completion script for your shell",
                            "  source <(assay completion bash)\n"
                            "  source <(assay completion zsh)");
  verb->add_option("SHELL", *shell, "bash or zsh")->required();
  verb->callback([&app, &session, shell] {
    session.set_action([&app, &session, shell]() -> base::Result<base::ExitCode> {
      const std::vector<std::string> shells = {"bash", "zsh"};
      if (*shell != "bash" && *shell != "zsh") {
        return base::fail(base::usage_error("completion", fmt::format("unknown shell '{}'", *shell),
                                            base::suggestion(*shell, shells)));
      }
      const std::string text = script(app, *shell == "zsh");
      session.print(text);
      session.print_json(base::Json{{"shell", *shell}, {"script", text}});
      return base::ExitCode::kYes;
    });
  });
}

}  // namespace assay::cli
