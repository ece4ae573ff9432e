// Completion, asked in the real shells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What bash would offer for a line that ends where the cursor is.
std::string bash_offers(const std::string& words, int cursor, const std::string& before = "") {
  const std::string script = "PATH=$(dirname " + support::program() +
                             "):$PATH; compopt() { :; }; source <(assay completion bash); "
                             "COMP_WORDS=(" +
                             words + "); COMP_CWORD=" + std::to_string(cursor) + "; " + before +
                             "_assay; unset IFS; echo \"${COMPREPLY[@]}\"";
  const auto outcome = support::run({{"bash", "-c", script}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

TEST(Completion, BashOffersVerbsThenOptionsThenNames) {
  EXPECT_THAT(bash_offers("assay pre", 1), HasSubstr("presets"));
  EXPECT_THAT(bash_offers("assay presets ''", 2), HasSubstr("show"));
  EXPECT_EQ(bash_offers("assay presets show llama3-8", 3), "llama3-8b llama3-8b-h200\n");
  EXPECT_THAT(bash_offers("assay presets show --", 3), HasSubstr("--set"));
  EXPECT_EQ(bash_offers("assay presets show tiny --set model.lay", 5), "model.layers=\n");
  EXPECT_EQ(bash_offers("assay completion z", 2), "zsh\n");
  EXPECT_EQ(bash_offers("assay plan nanochat-d26-h100-n", 2), "nanochat-d26-h100-nvl\n");
  EXPECT_EQ(bash_offers("assay plan --st", 2), "--step-time\n");
  EXPECT_EQ(bash_offers("assay dag --format s", 3), "svg\n");
  EXPECT_EQ(bash_offers("assay log --co", 2), "--count --columns\n");
  EXPECT_EQ(bash_offers("assay log -n l", 3), "\n");
  EXPECT_EQ(bash_offers("assay data synth --kind m", 4), "markov\n");
  EXPECT_EQ(bash_offers("assay data tokenize x --pattern cl", 5), "cl100k\n");
}

TEST(Completion, BashWorksWhateverTheSeparator) {
  EXPECT_EQ(bash_offers("assay presets show mixt", 3, "IFS=,; "), "mixtral-8x7b\n");
}

TEST(Completion, BashDoesNotOfferWhatDoesNotFit) {
  EXPECT_THAT(bash_offers("assay ''", 1), Not(HasSubstr("keys")));
  EXPECT_EQ(bash_offers("assay presets show nothing-like-this", 3), "\n");
}

// A real interactive zsh on a pseudo-terminal: type, press tab, read the line it made.
std::string zsh_line(const std::string& typed) {
  const std::string program_directory = std::filesystem::path(support::program()).parent_path();
  const std::string script = R"(
    zmodload zsh/zpty
    zpty shell zsh -f -i
    zpty -w shell 'PS1=; path=($DIR $path); autoload -U compinit; compinit -u -D
      source <(assay completion zsh); bindkey "^I" complete-word
      show() { zle -I; print -r -- "LINE:<$BUFFER>"; BUFFER=; }
      zle -N show; bindkey "^X" show; print REA""DY'
    zpty -r -m shell seen '*READY*'
    zpty -n -w shell "$TYPED"$'\t\x18'
    zpty -r -m shell seen '*LINE:<*>*'
    print -r -- "${${seen##*LINE:<}%%>*}"
    zpty -d shell)";
  const auto outcome = support::run({{"env", "DIR=" + program_directory, "TYPED=" + typed,
                                      "timeout", "30", "zsh", "-f", "-c", script}});
  return outcome.out;
}

TEST(Completion, ZshCompletesVerbsNamesAndKeys) {
  EXPECT_EQ(zsh_line("assay pres"), "assay presets \n");
  EXPECT_EQ(zsh_line("assay presets show mixt"), "assay presets show mixtral-8x7b \n");
  EXPECT_EQ(zsh_line("assay presets show tiny --set model.lay"),
            "assay presets show tiny --set model.layers=\n");
}

TEST(Completion, ZshScriptParses) {
  const auto outcome =
      support::run({{"bash", "-c", support::program() + " completion zsh | zsh -n /dev/stdin"}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

}  // namespace
}  // namespace assay
