// `assay compare` when an arm fails or the command line is wrong: nothing measured is lost, and
// errors are one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/json.h"
#include "cli/compare_fixture.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CompareCli, AFailingArmIsNamedAndNothingIsLost) {
  write("b.sh", "echo took 1; test -e good || { echo broken >&2; exit 7; }\n");
  const auto outcome = compare({"--a", kA, "--b", "sh b.sh", "--metric", kTook, "--max-pairs", "6",
                                "--seed", "3", "-o", "x"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, AllOf(StartsWith("assay: run "),
                                 HasSubstr("arm B: exited with 7; its "
                                           "output is in "),
                                 EndsWith("; correct it and compare again\n")));
  // The same in all places.
  const Json result = Json::parse(read("x/result.json"));
  EXPECT_TRUE(result["verdict"].is_null());
  EXPECT_TRUE(result["comparisons"][0]["verdict"].is_null());
  EXPECT_THAT(std::string(result["failure"]), HasSubstr("arm B: exited with 7; its output is in "));
  const auto reported = support::run({{support::program(), "report", "x"}, "", directory_.path()});
  EXPECT_EQ(reported.exit_code, 3);
  EXPECT_THAT(reported.err, AllOf(StartsWith("assay: x: has no finished pair of runs: run "),
                                  HasSubstr("arm B: exited with 7; its output is in ")));
  const int kept = runs_in("x/runs.jsonl");
  EXPECT_THAT(read("x/runs.jsonl"), Not(HasSubstr("\"analysis\"")));  // there was no estimate
  write("good", "");
  const auto resumed = compare({"--resume", "x", "--json"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_GE(runs_in("x/runs.jsonl"), kept + 18);
  EXPECT_EQ(Json::parse(resumed.out)["pairs"], 6);
}

// What was measured until an arm failed is reported and kept, without a verdict.
TEST_F(CompareCli, MeasurementsBeforeAFailureAreReported) {
  write("b.sh", "echo took 102; echo x >> count; test $(wc -l < count) -lt 5 || exit 7\n");
  const std::vector<std::string> arguments = {"--a",      kA,    "--b",       "sh b.sh",
                                              "--metric", kTook, "--cleanup", "echo c >> cleaned"};
  std::vector<std::string> text = arguments;
  text.insert(text.end(), {"-o", "t"});
  const auto outcome = compare(text);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("B against A"), HasSubstr("NO VERDICT: an arm failed"),
                                 HasSubstr("+2.00 %"), Not(HasSubstr("INCONCLUSIVE"))));
  // It has succeeded before, so it may again.
  EXPECT_THAT(outcome.err, HasSubstr("runs are kept; continue with assay compare --resume "));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  const std::string cleaned = read("cleaned");
  EXPECT_EQ(std::count(cleaned.begin(), cleaned.end(), 'c'), runs_in("t/runs.jsonl") + 1);
  fs::remove(directory_.path() / "count");
  std::vector<std::string> exported = arguments;
  exported.insert(exported.end(), {"--export", "f.md"});
  const Json json = compare_json(exported, 3);
  EXPECT_EQ(json["pairs"], 4);
  EXPECT_TRUE(json["verdict"].is_null());
  EXPECT_THAT(read("f.md"), AllOf(HasSubstr("| NO VERDICT |"), HasSubstr("arm B: exited with 7"),
                                  Not(HasSubstr("INCONCLUSIVE"))));
  const auto page =
      support::run({{support::program(), "report", "x", "--format", "md"}, "", directory_.path()});
  EXPECT_THAT(page.out, AllOf(HasSubstr("**NO VERDICT** run "), HasSubstr("exited with 7"),
                              Not(HasSubstr("INCONCLUSIVE"))));
  EXPECT_EQ(json["stopped"], "an arm failed");
  EXPECT_THAT(std::string(json["failure"]), HasSubstr("arm B: exited with 7"));
  ASSERT_EQ(json["failed_runs"].size(), 1U);
  EXPECT_THAT(std::string(json["failed_runs"][0]["what"]), StartsWith("exited with 7"));
  EXPECT_EQ(Json::parse(read("x/result.json")), json);
  // The next run does not overwrite what the failing one printed.
  const auto number = json["failed_runs"][0]["run"].get<int>();
  fs::remove(directory_.path() / "count");
  compare({"--resume", "x", "--max-pairs", "5"});
  EXPECT_THAT(read("x/runs.jsonl"), HasSubstr("{\"run\":" + std::to_string(number + 1) + ","));
  EXPECT_THAT(read("x/runs.jsonl"), Not(HasSubstr("\n{\"run\":" + std::to_string(number) + ",")));
}

TEST_F(CompareCli, ACommandThatVanishesIsNamed) {
  write("prog",
        "#!/bin/sh\necho took 1; echo x >> count; test $(wc -l < count) -lt 3 || rm prog\n");
  fs::permissions(directory_.path() / "prog", fs::perms::owner_all);
  const auto outcome =
      compare({"--a", "echo took 1", "--b", "./prog", "--metric", kTook, "-o", "x"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(
      outcome.err,
      AllOf(StartsWith("assay: run "), HasSubstr("arm B: ./prog is not an executable program"),
            HasSubstr("runs are kept; continue with assay compare --resume ")));
}

TEST_F(CompareCli, CleanUpFollowsATimeoutAndAnInterrupt) {
  compare({"--a", "sleep 9", "--b", "sleep 9", "--timeout", "50ms", "--cleanup", "echo c > late"});
  EXPECT_EQ(read("late"), "c\n");
  const pid_t child = ::fork();
  if (child == 0) {
    if (::chdir(directory_.path().c_str()) != 0) ::_exit(99);
    ::execl(support::program().c_str(), "assay", "compare", "--a", "echo > began; sleep 9", "--b",
            "echo > began; sleep 9", "--cleanup", "sleep 0.1; echo c > cut", "-o", "x", "--quiet",
            nullptr);
    ::_exit(99);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!fs::exists(directory_.path() / "began") && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_EQ(read("cut"), "c\n");
}

TEST_F(CompareCli, ArmsWithoutACommonStepFailAtOnce) {
  const auto outcome = compare({"--a", "printf '1 5\\n2 5\\n'", "--b", "printf '11 5\\n12 5\\n'",
                                "--steps", "regex:([0-9]+) ([0-9]+)", "-o", "x"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err,
            "assay: arm B: has no steady step in common with A: A has steps 1 to 2, B has steps 11 "
            "to 12; steps are matched by number: all arms must number "
            "them alike\n");
  EXPECT_EQ(runs_in("x/runs.jsonl"), 3);
}

TEST_F(CompareCli, WhatCannotBeMeasuredIsOneLine) {
  const auto says = [&](const std::vector<std::string>& arguments, const std::string& what) {
    const auto outcome = compare(arguments);
    EXPECT_EQ(outcome.exit_code, 3) << what;
    EXPECT_THAT(outcome.err, HasSubstr(what));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  // Before anything runs, where that can be known.
  says({"--a", "touch ran", "--b", "no-such-command-here"},
       "assay: arm B: command not found: no-such-command-here\n");
  says({"--a", "/no/such", "--b", "touch ran"}, "assay: arm A: command not found: /no/such\n");
  EXPECT_FALSE(fs::exists(directory_.path() / "ran"));
  says({"--a", "true", "--b", "no-such-command-here | cat; exit 127"},
       "exited with 127 (command not found)");
  says({"--a", "true", "--b", "./made", "--prepare",
        "printf '#!/bin/sh\nexit 9' > made; chmod +x made"},
       "exited with 9");
  says({"--a", "true", "--b", "true", "--metric", kTook}, "was not found in its output");
  says({"--a", "echo took 0", "--b", "echo took 0", "--metric", kTook},
       "is 0; a ratio needs a value above 0");
  const char* bytes = "printf 'took \\377\\n'";
  says({"--a", bytes, "--b", bytes, "--metric", "regex:took (.*)"}, "is not a number");
  says({"--a", "sleep 5", "--b", "sleep 5", "--timeout", "50ms"}, "timed out");
  says({"--a", "true", "--b", "true", "--prepare", "false"}, "--prepare exited with 1");
  says({"--a", "true", "--b", "true", "--metric", "stored:seconds"},
       "nothing is recorded here or above");
}

// What cannot be written is said before anything runs.
TEST_F(CompareCli, ExportsGoWhereTheyCanBeWritten) {
  write("file", "");
  for (const char* file : {"no/where.md", "file/inside.csv"}) {
    const auto outcome =
        compare({"--a", "touch ran", "--b", "true", "--max-pairs", "2", "--export", file});
    EXPECT_EQ(outcome.exit_code, 3) << file;
    EXPECT_THAT(outcome.err, StartsWith("assay: " + std::string(file) + ": cannot be written"));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  }
  fs::create_directory(directory_.path() / "folder.md");
  refused({"--a", "touch ran", "--b", "true", "--export", "folder.md"},
          "--export: 'folder.md' is a folder");
  EXPECT_FALSE(fs::exists(directory_.path() / "ran"));
  // If it fails afterwards, the result has been printed.
  fs::create_directory(directory_.path() / "gone");
  const auto lost = compare({"--a", "echo took 1; rm -rf gone", "--b", "echo took 2", "--metric",
                             kTook, "--max-pairs", "6", "--export", "gone/r.md"});
  EXPECT_EQ(lost.exit_code, 3);
  EXPECT_THAT(lost.out, HasSubstr("B against A"));
}

// `| true`: printing ends the program, but exports are written by then.
TEST_F(CompareCli, ExportsDoNotNeedAReader) {
  const auto pipe = [&](const std::string& arguments) {
    return support::run({{"bash", "-c",
                          support::program() +
                              " compare --metric 'regex:took ([0-9.]+)' "
                              "--max-pairs 2 --no-second-baseline " +
                              arguments + " | true"},
                         "",
                         directory_.path()});
  };
  pipe("--a 'echo took 1; sleep 0.2' --b 'echo took 2' -o one --export one.csv");
  EXPECT_THAT(read("one.csv"), HasSubstr("\n1,"));
  pipe("--scan N=1,2 --a 'echo took {N}; sleep 0.1' --b 'echo took 2' -o s --export s.csv");
  EXPECT_THAT(read("s.csv"), HasSubstr("\n2,1,"));
}

TEST_F(CompareCli, ARunThatPrintedNothingLeavesNoFiles) {
  const auto outcome = compare({"--a", "true", "--b", "false", "-o", "x"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("arm B: exited with 1; it printed nothing; correct it"));
  EXPECT_TRUE(fs::is_empty(directory_.path() / "x/out"));
}

TEST_F(CompareCli, ADamagedScanIsOneLine) {
  fs::create_directory(directory_.path() / "s");
  write("s/scan.json", R"({"scanned": ["N"], "points": []})");
  const auto outcome = compare({"--resume", "s"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("scan.json: is not a scan\n"));
}

TEST_F(CompareCli, MistakesAreOneLine) {
  refused({},
          "compare: there is nothing to compare with; give --a and --b, or --under WRAPPER -- "
          "COMMAND");
  refused({"--a", "true"},
          "compare: --b is missing or empty; give --a and --b, or --under WRAPPER -- COMMAND");
  refused({"--a", "", "--b", "true"},
          "compare: --a is missing or empty; give --a and --b, or --under WRAPPER -- COMMAND");
  refused({"--scan", "N=1", "--", "echo {N}"},
          "--scan: N has one value: there is nothing to compare it with; give more values, or two "
          "commands with --a and --b");
  refused({"--a", "true", "--b", "true", "--metric", "regex:("},
          "--metric: '(' is not a regular expression; groups are (…), a digit is [0-9]");
  refused(
      {"--a", "true", "--b", "true", "--metric", "speed"},
      "--metric: 'speed' is not a metric; one of wall, cpu, regex:PATTERN, json:PATH, stored:NAME");
  refused({"--a", "true", "--b", "true", "--max-time", "10"},
          "--max-time: '10' has no unit; for example 10s, 10min or 10h");
  refused({"--a", "true", "--b", "true", "--margin", "much"},
          "--margin: 'much' is not a percentage; 0.5%, for example");
  refused({"--a", "true", "--b", "true", "--half-width", "0"},
          "--half-width: must be more than 0 %");
  refused({"--a", "true", "--b", "true", "--max-pairs", "0"},
          "compare --max-pairs: '0' is not a whole number of at least 1");
  refused({"--a", "true", "--b", "true", "--arm", "C"},
          "--arm: 'C' has no name; --arm NAME=COMMAND");
  refused({"--a", "true", "--b", "true", "--arm", "B=true"},
          "compare: 'B' cannot name an arm; names must be distinct, not empty, and "
          "without slash or quote");
  refused({"--a", "true", "--b", "printf '\xff'"},
          "compare: the command of arm 'B' is not UTF-8; put it into a script");
  refused({"--resume", "nowhere"}, directory_.path().string() +
                                       "/nowhere: contains no experiment to resume; a folder "
                                       "written by assay compare has runs.jsonl");
  write("e.toml", "metrik = \"wall\"\n");
  refused({"--file", "e.toml"}, "e.toml:1: unknown key 'metrik'; did you mean 'metric'?");
  write("e.toml", "[[arm]]\nname = \"A\"\ncomand = \"true\"\n");
  refused({"--file", "e.toml"}, "e.toml:3: unknown key 'comand'; did you mean 'command'?");
  write("e.toml", "min_pairs = \"x\"\n");
  refused({"--file", "e.toml"}, "e.toml:1: min_pairs is the string 'x', not a count");
}

}  // namespace
}  // namespace assay
