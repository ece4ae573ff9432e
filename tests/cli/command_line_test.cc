// How words become arguments, options and another command's words, on verbs made for the purpose.
#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CommandLine : public ::testing::Test {
 protected:
  CommandLine() {
    root_.verbs = {{.name = "run",
                    .description = "another command",
                    .examples = {},
                    .options = {{"--tracer", "which", &tracer_, {}, "NAME"},
                                {"--set", "values", &sets_},
                                {"-b,--build", "flag", &build_}},
                    .rest = {"COMMAND", "what to run", &rest_, &step_},
                    .action = [] { return base::ExitCode::kYes; }},
                   {.name = "label",
                    .description = "names",
                    .examples = {},
                    .arguments = {{"WHAT", "a thing", &what_},
                                  {.name = "NAME", .help = "names", .values = &names_}},
                    .action = [] { return base::ExitCode::kYes; }}};
  }

  // "" or the error's line.
  std::string parse(std::vector<std::string> words) {
    words.insert(words.begin(), "assay");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    const auto request =
        parse_command_line(root_, session_, static_cast<int>(argv.size()), argv.data());
    return request ? "" : request.error().line();
  }

  Session session_;
  Verb root_{"assay", "test", {}};
  std::string tracer_, what_;
  std::string step_;
  std::vector<std::string> sets_, rest_, names_;
  bool build_ = false;
};

TEST_F(CommandLine, WordsAfterTheDashesAreAnotherCommands) {
  EXPECT_EQ(parse({"run", "--tracer", "ptrace", "-b", "--", "ls", "--json", "--", "-x"}), "");
  EXPECT_EQ(tracer_, "ptrace");
  EXPECT_TRUE(build_);
  EXPECT_FALSE(session_.json);
  EXPECT_THAT(rest_, ElementsAre("ls", "--json", "--", "-x"));
}

TEST_F(CommandLine, SoAreThoseFromTheFirstWordOn) {
  EXPECT_EQ(parse({"run", "--tracer", "ebpf", "ls", "--tracer", "x", "--help"}), "");
  EXPECT_EQ(tracer_, "ebpf");
  EXPECT_THAT(rest_, ElementsAre("ls", "--tracer", "x", "--help"));
}

TEST_F(CommandLine, AStepMayBeFollowedByOptions) {
  EXPECT_EQ(parse({"run", "@3", "--set", "lr=0.1", "--set=a=b", "--json"}), "");
  EXPECT_EQ(step_, "@3");
  EXPECT_THAT(rest_, IsEmpty());
  EXPECT_THAT(sets_, ElementsAre("lr=0.1", "a=b"));
  EXPECT_TRUE(session_.json);
}

TEST_F(CommandLine, AValueThatLooksLikeAWordIsStillAValue) {
  EXPECT_EQ(parse({"run", "--set", "ls", "--tracer=x", "cat"}), "");
  EXPECT_THAT(sets_, ElementsAre("ls"));
  EXPECT_THAT(rest_, ElementsAre("cat"));
}

TEST_F(CommandLine, NothingIsAlsoAnAnswer) {
  EXPECT_EQ(parse({"run"}), "");
  EXPECT_EQ(parse({"run", "--"}), "");
  EXPECT_THAT(rest_, IsEmpty());
  EXPECT_EQ(parse({"run", "-"}), "");
  EXPECT_THAT(rest_, ElementsAre("-"));
}

TEST_F(CommandLine, WordsOfAnotherCommandMayBeEmptyOrStrange) {
  EXPECT_EQ(parse({"run", "--", "", "@1", "a b", "\xff"}), "");
  EXPECT_THAT(rest_, ElementsAre("", "@1", "a b", "\xff"));
}

TEST_F(CommandLine, MistakesBeforeItAreOurs) {
  EXPECT_EQ(parse({"run", "--tracr", "x"}),
            "run: unexpected argument '--tracr'; did you mean '--tracer'?");
  EXPECT_EQ(parse({"run", "--tracer"}), "run: --tracer needs a value; see `assay run --help`");
}

TEST_F(CommandLine, OfASingleValueTheLastCounts) {
  EXPECT_EQ(parse({"run", "--tracer", "a", "--tracer", "b"}), "");
  EXPECT_EQ(tracer_, "b");
}

TEST_F(CommandLine, ArgumentsMayBeAnyNumber) {
  EXPECT_EQ(parse({"label", "last", "a", "b"}), "");
  EXPECT_EQ(what_, "last");
  EXPECT_THAT(names_, ElementsAre("a", "b"));
}

TEST_F(CommandLine, HelpNamesEverything) {
  std::vector<std::string> words = {"assay", "run", "--help"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  const auto request = parse_command_line(root_, session_, 3, argv.data());
  ASSERT_TRUE(request);
  EXPECT_THAT(
      std::get<ShowHelp>(*request).text,
      ::testing::AllOf(HasSubstr("COMMAND"), HasSubstr("--tracer NAME"), HasSubstr("-b,--build")));
}

}  // namespace
}  // namespace assay::cli
