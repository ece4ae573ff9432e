// Parsing of arguments, options and wrapped commands, help and man page, on verbs made for the
// test.
#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/man_page.h"
#include "cli/program.h"

namespace assay::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CommandLine : public ::testing::Test {
 protected:
  CommandLine() {
    root_.verbs = {{.name = "run",
                    .description = "another command",
                    .examples = {},
                    .options = {{"--tracer", "which", &tracer_, {}, "NAME"},
                                {"--prompt", "a text", &prompt_, {}, "TEXT"},
                                {"--set", "values", &sets_},
                                {"-b,--build", "flag", &build_}},
                    .wrapped = {"COMMAND", "what to run", &wrapped_, &stage_},
                    .action = [] { return base::ExitCode::kYes; }},
                   {.name = "label",
                    .description = "names",
                    .examples = {},
                    .arguments = {{"WHAT", "a thing", &what_},
                                  {.name = "NAME", .help = "names", .values = &names_}},
                    .action = [] { return base::ExitCode::kYes; }}};
  }

  // "" or the error's line.
  std::string parse(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "assay");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    const auto request =
        parse_command_line(root_, session_, static_cast<int>(argv.size()), argv.data());
    return request ? "" : request.error().line();
  }

  std::string help_text(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "assay");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    const auto request =
        parse_command_line(root_, session_, static_cast<int>(argv.size()), argv.data());
    const ShowHelp* help = request ? std::get_if<ShowHelp>(&*request) : nullptr;
    return help == nullptr ? "no help" : help->text;
  }

  Session session_;
  Verb root_{"assay", "test", {}};
  std::string tracer_, what_;
  std::string prompt_;
  std::string stage_;
  std::vector<std::string> sets_, wrapped_, names_;
  bool build_ = false;
  std::vector<OrderedValue> rules_;
};

TEST_F(CommandLine, ArgumentsAfterTheDashesBelongToTheCommand) {
  EXPECT_EQ(parse({"run", "--tracer", "ptrace", "-b", "--", "ls", "--json", "--", "-x"}), "");
  EXPECT_EQ(tracer_, "ptrace");
  EXPECT_TRUE(build_);
  EXPECT_FALSE(session_.json);
  EXPECT_THAT(wrapped_, ElementsAre("ls", "--json", "--", "-x"));
}

TEST_F(CommandLine, ArgumentsFromTheFirstPositionalOnBelongToTheCommand) {
  EXPECT_EQ(parse({"run", "--tracer", "ebpf", "ls", "--tracer", "x", "--help"}), "");
  EXPECT_EQ(tracer_, "ebpf");
  EXPECT_THAT(wrapped_, ElementsAre("ls", "--tracer", "x", "--help"));
}

TEST_F(CommandLine, AStageMayBeFollowedByOptions) {
  EXPECT_EQ(parse({"run", "@3", "--set", "lr=0.1", "--set=a=b", "--json"}), "");
  EXPECT_EQ(stage_, "@3");
  EXPECT_THAT(wrapped_, IsEmpty());
  EXPECT_THAT(sets_, ElementsAre("lr=0.1", "a=b"));
  EXPECT_TRUE(session_.json);
}

TEST_F(CommandLine, AnOptionsValueIsNotAPositional) {
  EXPECT_EQ(parse({"run", "--set", "ls", "--tracer=x", "cat"}), "");
  EXPECT_THAT(sets_, ElementsAre("ls"));
  EXPECT_THAT(wrapped_, ElementsAre("cat"));
}

TEST_F(CommandLine, AnEmptyValueDoesNotSwallowTheNextArgument) {
  prompt_ = "before";
  EXPECT_EQ(parse({"run", "--prompt=", "--set", "a=b", "ls"}), "");
  EXPECT_EQ(prompt_, "");
  EXPECT_THAT(sets_, ElementsAre("a=b"));
  EXPECT_THAT(wrapped_, ElementsAre("ls"));
}

TEST_F(CommandLine, AnEmptyNameIsRefused) {
  EXPECT_THAT(parse({"run", "--tracer=", "ls"}), HasSubstr("--tracer: needs a name"));
}

TEST_F(CommandLine, TheWrappedCommandMayBeEmpty) {
  EXPECT_EQ(parse({"run"}), "");
  EXPECT_EQ(parse({"run", "--"}), "");
  EXPECT_THAT(wrapped_, IsEmpty());
  EXPECT_EQ(parse({"run", "-"}), "");
  EXPECT_THAT(wrapped_, ElementsAre("-"));
}

TEST_F(CommandLine, ArgumentsOfTheCommandMayBeEmptyOrUnusual) {
  EXPECT_EQ(parse({"run", "--", "", "@1", "a b", "\xff"}), "");
  EXPECT_THAT(wrapped_, ElementsAre("", "@1", "a b", "\xff"));
}

TEST_F(CommandLine, ErrorsBeforeTheCommandAreReported) {
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
  std::vector<std::string> arguments = {"assay", "run", "--help"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const auto request = parse_command_line(root_, session_, 3, argv.data());
  ASSERT_TRUE(request);
  EXPECT_THAT(
      std::get<ShowHelp>(*request).text,
      ::testing::AllOf(HasSubstr("COMMAND"), HasSubstr("--tracer NAME"), HasSubstr("-b,--build")));
}

TEST_F(CommandLine, HelpListsVerbsUnderTheirGroups) {
  root_.verbs[0].group = "Observe";
  root_.verbs[1].group = "Ask";
  std::string program = "assay";
  char* argv[] = {program.data()};
  const auto request = parse_command_line(root_, session_, 1, argv);
  ASSERT_TRUE(request);
  EXPECT_THAT(std::get<ShowHelp>(*request).text,
              ::testing::ContainsRegex("Observe:\n +run .*\n\nAsk:\n +label "));
}

// CLI11 would list verbs of a verb under the heading of that verb itself.
TEST_F(CommandLine, VerbsOfAVerbHaveAHeadingOfTheirOwn) {
  root_.verbs[1].group = "Ask";
  root_.verbs[1].verbs = {{.name = "add", .description = "adds", .examples = {}}};
  const std::string help = help_text({"label", "--help"});
  EXPECT_THAT(help, HasSubstr("\n\nVerbs:\n  add "));
  EXPECT_THAT(help, Not(HasSubstr("Ask:")));
}

TEST_F(CommandLine, OptionsNameTheirDefaults) {
  std::string count = "200";
  std::string named = "7";
  root_.verbs[0].options.push_back({"--count", "how many", &count, {}, "N"});
  root_.verbs[0].options.push_back({"--named", "by its name; default: seven", &named, {}, "N"});
  const std::string help = help_text({"run", "--count", "5", "--help"});
  EXPECT_THAT(help, ContainsRegex("--count N +how many; default: 200\n"));
  EXPECT_THAT(help, ContainsRegex("--named N +by its name; default: seven\n"));
  EXPECT_THAT(help, ContainsRegex("--prompt TEXT +a text\n"));
}

TEST_F(CommandLine, OptionsThatMayBeRepeatedSaySo) {
  root_.verbs[0].options.push_back({"--keep", "which", &rules_, {}, "PATTERN"});
  root_.verbs[0].options.push_back({"--name", "a name", &names_, {}, "NAME", false, true});
  const std::string help = help_text({"run", "--help"});
  EXPECT_THAT(help, ContainsRegex("--set KEY=VALUE +values; repeatable\n"));
  EXPECT_THAT(help, ContainsRegex("--keep PATTERN +which; repeatable\n"));
  EXPECT_THAT(help, ContainsRegex("--name NAME +a name\n"));
  EXPECT_THAT(help, Not(HasSubstr("KEY=VALUE ...")));
}

TEST_F(CommandLine, HelpIsAlsoAVerb) {
  EXPECT_EQ(help_text({"help"}), help_text({"--help"}));
  EXPECT_EQ(help_text({"help", "run"}), help_text({"run", "--help"}));
  EXPECT_THAT(help_text({"help"}), Not(HasSubstr("\n\n\n")));
  EXPECT_EQ(parse({"help", "rnu"}), "help: unknown command 'rnu'; did you mean 'run'?");
}

TEST_F(CommandLine, TheManPageHasEveryVerbAndCannotBeBrokenByText) {
  root_.verbs[1].description = ".SH not a request\n'nor this \\fB";
  const std::string page = man_page_of(root_);
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-tracer\\fR \\fINAME\\fR"));
  EXPECT_THAT(page, HasSubstr("[\\fIWHAT\\fR] [\\fINAME\\fR…]"));
  EXPECT_THAT(page, HasSubstr("\\-\\-version"));
  EXPECT_THAT(page, HasSubstr("\n.SH FILES\n"));
  EXPECT_THAT(page, HasSubstr("\n.SH ENVIRONMENT\n"));
  EXPECT_THAT(page, HasSubstr(".SS assay label\n\\&.SH not a request\n\\&'nor this \\efB"));
}

// Output that is not a terminal reaches its reader line by line, while the verb goes on.
TEST(Program, PrintsByLineIntoAPipe) {
  int output[2];
  int go_on[2];
  ASSERT_EQ(::pipe(output), 0);
  ASSERT_EQ(::pipe(go_on), 0);
  std::fflush(stdout);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::dup2(output[1], STDOUT_FILENO);
    ::close(go_on[1]);
    std::string program = "assay";
    std::string verb = "slow";
    char* argv[] = {program.data(), verb.data()};
    ::_exit(run_program(2, argv, [&](const Session& session, Verb& root) {
      root = {"assay", "test", {}};
      root.verbs = {{.name = "slow", .description = "", .examples = {}, .action = [&] {
                       session.print("first line\n");
                       char ignored = 0;
                       EXPECT_EQ(::read(go_on[0], &ignored, 1), 0);
                       return base::ExitCode::kYes;
                     }}};
    }));
  }
  ::close(output[1]);
  ::close(go_on[0]);
  struct pollfd readable {
    output[0], POLLIN, 0
  };
  ASSERT_EQ(::poll(&readable, 1, 20'000), 1) << "the line is still in a buffer";
  char text[64] = {};
  EXPECT_EQ(::read(output[0], text, sizeof text - 1), 11);
  EXPECT_STREQ(text, "first line\n");
  ::close(go_on[1]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(output[0]);
}

}  // namespace
}  // namespace assay::cli
