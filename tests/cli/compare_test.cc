// `assay compare` as a user meets it: verdicts as exit codes, nothing measured is lost, and one
// line for mistakes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "base/text.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class CompareCli : public ::testing::Test {
 protected:
  // What it keeps goes where the test does.
  support::Outcome compare(std::vector<std::string> arguments) {
    const auto given = [&](const char* option) {
      return std::find(arguments.begin(), arguments.end(), option) != arguments.end();
    };
    if (!given("-o") && !given("--resume")) {
      arguments.insert(arguments.begin(), {"-o", "kept-" + std::to_string(++kept_)});
    }
    arguments.insert(arguments.begin(), {support::program(), "compare"});
    return support::run({arguments, "", directory_.path()});
  }
  // Of an experiment that is kept in x/.
  Json compare_json(std::vector<std::string> arguments, int exit_code) {
    arguments.insert(arguments.begin(), {"--json", "-o", "x"});
    const auto outcome = compare(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    return Json::parse(outcome.out);
  }
  void refused(const std::vector<std::string>& arguments, const std::string& line) {
    const auto outcome = compare(arguments);
    EXPECT_EQ(outcome.exit_code, 64) << outcome.out;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(outcome.err, "assay: " + line + "\n");
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.path() / name) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(directory_.path() / name).rdbuf();
    return text.str();
  }
  [[nodiscard]] int runs_in(const std::string& name) const {
    std::istringstream lines(read(name));
    int runs = 0;
    for (std::string line; std::getline(lines, line);)
      runs += line.starts_with("{\"run\":") ? 1 : 0;
    return runs;
  }
  base::testing::TempDir directory_;
  int kept_ = 0;
};

// Commands that say how long they took, so that nothing here depends on the machine.
constexpr const char* kA = "echo took 100 s";
constexpr const char* kB = "echo took 102 s";
constexpr const char* kTook = "regex:took ([0-9.]+)";

TEST_F(CompareCli, VerdictsAreExitCodes) {
  EXPECT_EQ(compare({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "6"}).exit_code, 1);
  EXPECT_EQ(compare({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "6", "--margin", "3%"})
                .exit_code,
            0);
  EXPECT_EQ(compare({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "1"}).exit_code, 2);
  EXPECT_EQ(compare({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "6",
                     "--more-is-better", "--margin", "0%"})
                .exit_code,
            0);
}

TEST_F(CompareCli, JsonHasWhatItPromises) {
  const Json json =
      compare_json({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "7", "--seed", "5"}, 1);
  EXPECT_NEAR(json["effect_pct"].get<double>(), 2, 1e-9);
  EXPECT_NEAR(json["ci_low_pct"].get<double>(), 2, 1e-9);
  EXPECT_NEAR(json["ci_high_pct"].get<double>(), 2, 1e-9);
  EXPECT_EQ(json["method"], "hodges-lehmann-signed-rank");
  EXPECT_EQ(json["pairs"], 7);
  EXPECT_NEAR(json["noise_floor_pct"].get<double>(), 0, 1e-9);
  EXPECT_EQ(json["verdict"], "FAIL");
  ASSERT_EQ(json["arms"].size(), 3U);
  EXPECT_EQ(json["arms"][2]["name"], "A'");
  EXPECT_EQ(json["arms"][1]["median"], 102);
  ASSERT_EQ(json["pairs_raw"].size(), 7U);
  EXPECT_EQ(json["pairs_raw"][3]["values"], Json::parse("[100.0, 102.0, 100.0]"));
  EXPECT_EQ(json["seed"], 5);
  EXPECT_EQ(Json::parse(read("x/result.json")), json);
  EXPECT_EQ(runs_in("x/runs.jsonl"), 7 * 3);
  // The output of each run is there.
  EXPECT_EQ(read("x/out/0001-" + std::string(json["arms"][0]["name"]) + ".out").empty() +
                read("x/out/0001-B.out").empty() + read("x/out/0001-A'.out").empty(),
            2);
}

TEST_F(CompareCli, RunsInRandomOrderThatASeedRepeats) {
  const auto orders = [&](const std::string& seed, const std::string& folder) {
    compare({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "12", "--seed", seed, "-o",
             folder});
    std::istringstream lines(read(folder + "/runs.jsonl"));
    std::string order;
    for (std::string line; std::getline(lines, line);) {
      const Json run = Json::parse(line);
      if (run.contains("arm")) order += std::to_string(run["arm"].get<int>());
    }
    return order;
  };
  const std::string first = orders("1", "p");
  EXPECT_EQ(first.size(), 36U);
  EXPECT_EQ(first, orders("1", "q"));
  EXPECT_NE(first, orders("2", "r"));
}

TEST_F(CompareCli, AWrapperIsComparedWithTheBareCommand) {
  const Json json =
      compare_json({"--under", "env X=1", "--max-pairs", "1", "--", "echo", "a b", "$x"}, 2);
  EXPECT_EQ(json["arms"][0]["name"], "bare");
  EXPECT_EQ(json["arms"][0]["command"], "echo 'a b' '$x'");
  EXPECT_EQ(json["arms"][1]["command"], "env X=1 echo 'a b' '$x'");
  EXPECT_EQ(
      read("x/out/0002-bare.out") + read("x/out/0002-under.out") + read("x/out/0002-bare'.out"),
      "a b $x\n");
}

TEST_F(CompareCli, SettingsInFrontOfAWrapperAreTheArmsOwn) {
  const Json json = compare_json(
      {"--under", "LD_LIBRARY_PATH=/x K=v env", "--max-pairs", "1", "--", "printenv", "PATH"}, 2);
  EXPECT_EQ(json["arms"][1]["command"], "env printenv PATH");
  EXPECT_EQ(json["arms"][1]["environment"], Json::parse(R"(["LD_LIBRARY_PATH=/x", "K=v"])"));
}

TEST_F(CompareCli, ArmsStartWithEquallyLargeEnvironments) {
  write("e.toml",
        "metric = \"regex:size ([0-9]+)\"\nmax_pairs = 6\nmargin = \"0.1%\"\n"
        "[[arm]]\nname = \"A\"\ncommand = \"sh size.sh\"\n"
        "[[arm]]\nname = \"B\"\ncommand = \"sh size.sh\"\n"
        "environment = { LD_SOMETHING = \"a long value that the other arm does not have\" }\n");
  // Pointers count too; the shell adds the same variables to either.
  write("size.sh", "echo size $(($(env | wc -c) + 8 * $(env | wc -l)))\n");
  const Json json = compare_json({"--file", "e.toml"}, 0);
  EXPECT_NEAR(json["effect_pct"].get<double>(), 0, 1e-9);
  // From block to block it differs.
  EXPECT_NE(json["arms"][0]["least"], json["arms"][0]["most"]);
}

TEST_F(CompareCli, AnExperimentFileHasHooksAndOptionsGoOverIt) {
  write("e.toml",
        "metric = \"regex:took ([0-9.]+)\"\nmargin = \"1%\"\nmax_pairs = 50\nsecond_baseline = "
        "false\nprepare = \"echo p >> log\"\n[[arm]]\nname = \"old\"\ncommand = \"echo took 1\"\n"
        "[[arm]]\nname = \"new\"\ncommand = \"echo took 2\"\ncleanup = \"echo c >> log\"\n");
  const Json json = compare_json({"--file", "e.toml", "--max-pairs", "6"}, 1);
  EXPECT_EQ(json["pairs"], 6);
  EXPECT_TRUE(json["noise_floor_pct"].is_null());
  EXPECT_EQ(json["arms"].size(), 2U);
  const std::string log = read("log");
  EXPECT_EQ(std::count(log.begin(), log.end(), 'p'), 12);
  EXPECT_EQ(std::count(log.begin(), log.end(), 'c'), 6);
}

TEST_F(CompareCli, StepsAreComparedOneByOne) {
  write("train.sh",
        "echo loading; sleep $2\nfor i in 1 2 3 4 5 6 7 8; do echo \"step $i dt $1 loss 2.5\"; "
        "sleep 0.01; done\n");
  const Json json = compare_json({"--a", "sh train.sh 1.00 0", "--b", "sh train.sh 1.05 0.2",
                                  "--steps", "regex:step ([0-9]+) dt ([0-9.]+)", "--step-unit",
                                  "ms", "--quality", "regex:loss ([0-9.]+)", "--max-pairs", "6"},
                                 1);
  EXPECT_NEAR(json["effect_pct"].get<double>(), 5, 1e-9);
  const Json& b = json["comparisons"][0];
  EXPECT_EQ(b["steps"], 6 * 7);  // the first is not steady
  EXPECT_GT(b["startup_s"]["difference"].get<double>(), 0.05);
  EXPECT_GT(b["whole_runs"]["effect_pct"].get<double>(), 5);
  EXPECT_EQ(b["quality"]["difference"], 0);
  EXPECT_EQ(b["quality_within_noise"], true);
}

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
TEST_F(CompareCli, WhatWasMeasuredBeforeAFailureIsSaid) {
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
      AllOf(StartsWith("assay: run "), HasSubstr("arm B: ./prog is not a program that can be run"),
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

TEST_F(CompareCli, ProgressBarsAndTheirStartUpAreSeen) {
  write("bar.sh",
        "sleep $1\nfor i in 1 2 3 4 5 6 7 8; do sleep 0.01; printf '\\rstep %d took 10' $i >&2; "
        "done\n");
  const Json json =
      compare_json({"--a", "sh bar.sh 0", "--b", "sh bar.sh 0.2", "--steps",
                    "regex:step ([0-9]+) took ([0-9]+)", "--step-unit", "ms", "--max-pairs", "6"},
                   0);
  EXPECT_EQ(json["arms"][0]["steps_per_run"]["least"], 8);
  EXPECT_EQ(json["comparisons"][0]["steps"], 6 * 7);
  EXPECT_GT(json["comparisons"][0]["startup_s"]["difference"].get<double>(), 0.05);
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
  says({"--a", "sleep 5", "--b", "sleep 5", "--timeout", "50ms"}, "ran into the timeout");
  says({"--a", "true", "--b", "true", "--prepare", "false"}, "--prepare exited with 1");
  says({"--a", "true", "--b", "true", "--metric", "stored:seconds"}, "assay init");
}

TEST_F(CompareCli, MistakesAreOneLine) {
  refused({},
          "compare: there is nothing to compare with; give --a and --b, or --under WRAPPER -- "
          "COMMAND");
  refused({"--a", "true"},
          "compare: there is nothing to compare with; give --a and --b, or --under "
          "WRAPPER -- COMMAND");
  refused({"--a", "true", "--b", "true", "--metric", "regex:("},
          "--metric: '(' is not a regular expression; groups are (…), a digit is [0-9]");
  refused(
      {"--a", "true", "--b", "true", "--metric", "speed"},
      "--metric: 'speed' is not a metric; one of wall, cpu, regex:PATTERN, json:PATH, stored:NAME");
  refused({"--a", "true", "--b", "true", "--margin", "much"},
          "--margin: 'much' is not a percentage; 0.5%, for example");
  refused({"--a", "true", "--b", "true", "--half-width", "0"},
          "--half-width: must be more than 0 %");
  refused({"--a", "true", "--b", "true", "--arm", "C"},
          "--arm: 'C' has no name; --arm NAME=COMMAND");
  refused({"--a", "true", "--b", "true", "--arm", "B=true"},
          "compare: 'B' cannot name an arm; names are distinct, not empty, and have no slash or "
          "quote");
  refused({"--a", "true", "--b", "printf '\xff'"},
          "compare: the command of arm 'B' is not UTF-8; put it into a script");
  refused({"--resume", "nowhere"},
          directory_.path().string() +
              "/nowhere: has no experiment to resume; a folder written by assay compare has "
              "runs.jsonl");
  write("e.toml", "metrik = \"wall\"\n");
  refused({"--file", "e.toml"}, "e.toml:1: unknown key 'metrik'; did you mean 'metric'?");
  write("e.toml", "[[arm]]\nname = \"A\"\ncomand = \"true\"\n");
  refused({"--file", "e.toml"}, "e.toml:3: unknown key 'comand'; did you mean 'command'?");
  write("e.toml", "min_pairs = \"x\"\n");
  refused({"--file", "e.toml"}, "e.toml:1: min_pairs is the string 'x', not a count");
}

// Ctrl-C while it runs: what was measured is reported and kept, without a verdict.
TEST_F(CompareCli, AnInterruptedExperimentGoesOn) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int out = ::open((directory_.path() / "printed").c_str(), O_CREAT | O_WRONLY, 0600);
    ::dup2(out, STDOUT_FILENO);
    if (::chdir(directory_.path().c_str()) != 0) ::_exit(99);
    ::execl(support::program().c_str(), "assay", "compare", "--a", "sleep 0.01; echo took 1", "--b",
            "sleep 0.01; echo took 2", "--metric", kTook, "--min-pairs", "1000", "-o", "x",
            "--json", nullptr);
    ::_exit(99);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (runs_in("x/runs.jsonl") < 30 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  const Json before = Json::parse(read("printed"));
  EXPECT_EQ(before["verdict"], "INCONCLUSIVE");
  EXPECT_NEAR(before["effect_pct"].get<double>(), 100, 1e-9);
  const int kept = runs_in("x/runs.jsonl");
  const auto outcome = compare({"--resume", "x", "--min-pairs", "2", "--max-pairs",
                                std::to_string(before["pairs"].get<int>() + 2), "--half-width",
                                "0.0001%", "--json"});
  // Twice as long, every time: clear after an interim analysis too. The end was not planned,
  // though.
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const Json after = Json::parse(outcome.out);
  EXPECT_GE(after["pairs"], before["pairs"]);
  EXPECT_GE(runs_in("x/runs.jsonl"), kept);
  ASSERT_EQ(before["interim_analyses"].size(), 1U);
  EXPECT_TRUE(before["interim_analyses"][0]["confidence"].is_null());
  ASSERT_EQ(after["interim_analyses"].size(), 2U);
  EXPECT_EQ(after["interim_analyses"][0], before["interim_analyses"][0]);
  EXPECT_EQ(after["interim_analyses"][1]["planned"], false);
  EXPECT_NEAR(after["interim_analyses"][1]["confidence"].get<double>(), 1 - 0.05 / 12, 1e-12);
  EXPECT_THAT(after["warnings"].dump(), HasSubstr("reported 1 time before"));
}

// Six pairs that all say more decide, if that was the plan. After an interim analysis they do not:
// one can wait for such a run of luck.
TEST_F(CompareCli, AnInterimAnalysisCostsConfidence) {
  const std::vector<std::string> arms = {"--a", kA, "--b", kB, "--metric", kTook};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), arms.begin(), arms.end());
    return compare(more);
  };
  EXPECT_EQ(with({"--max-pairs", "7", "-o", "planned"}).exit_code, 1);
  EXPECT_EQ(with({"--max-pairs", "1", "-o", "peeked"}).exit_code, 2);
  const auto resumed = compare({"--resume", "peeked", "--max-pairs", "7"});
  EXPECT_EQ(resumed.exit_code, 2) << resumed.out;
  EXPECT_THAT(resumed.out, AllOf(HasSubstr("reported 1 time before"),
                                 HasSubstr("the maximum number of pairs was changed from 1 to 7")));
}

// The rule is met: resuming alone would end at once, so the option to change is suggested.
TEST_F(CompareCli, WhatIsSuggestedChangesSomething) {
  const auto one =
      compare({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "1", "-o", "x"});
  EXPECT_THAT(one.out + one.err,
              HasSubstr("--resume " + (directory_.path() / "x").string() + " --max-pairs 2\n"));
  const auto again = compare({"--resume", "x", "--max-pairs", "2", "--json"});
  EXPECT_EQ(Json::parse(again.out)["pairs"], 2);
  const auto narrow =
      compare({"--a", kA, "--b", kA, "--metric", kTook, "--min-pairs", "2", "--margin", "0%"});
  EXPECT_EQ(narrow.exit_code, 2);
  EXPECT_THAT(narrow.out + narrow.err, HasSubstr("--half-width 0.125%\n"));
}

// One experiment has one verdict, and a change of the margin is reported.
TEST_F(CompareCli, AMarginThatWasChangedIsTheReportsToo) {
  EXPECT_EQ(
      compare({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "8", "-o", "mar"}).exit_code,
      1);
  const auto resumed = compare({"--resume", "mar", "--margin", "5%", "--json"});
  EXPECT_EQ(resumed.exit_code, 0);
  const Json json = Json::parse(resumed.out);
  EXPECT_EQ(json["rule_changes"][0]["from"]["margin_pct"], 1.0);
  EXPECT_EQ(json["rule_changes"][0]["to"]["margin_pct"], 5.0);
  const auto page =
      support::run({{support::program(), "report", "mar", "-o", "page.md"}, "", directory_.path()});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(read("page.md"),
              AllOf(HasSubstr("PASS"), HasSubstr("allowed: 5 % more"), Not(HasSubstr("FAIL")),
                    HasSubstr("the margin was changed from 1 % to 5 %")));
}

TEST_F(CompareCli, TheArmThatDecidedIsNamed) {
  const std::vector<std::string> arms = {"--a",         kA,
                                         "--arm",       "ok=echo took 100",
                                         "--arm",       "slow=echo took 110",
                                         "--metric",    kTook,
                                         "--max-pairs", "8"};
  std::vector<std::string> text = arms;
  text.insert(text.end(), {"-o", "y"});
  EXPECT_THAT(compare(text).out, HasSubstr("FAIL: slow: the interval is beyond a margin of 1 %"));
  const Json json = compare_json(arms, 1);
  EXPECT_EQ(json["arm"], "slow");
  EXPECT_NEAR(json["effect_pct"].get<double>(), 10, 1e-9);
  const auto page =
      support::run({{support::program(), "report", "x", "-o", "page.md"}, "", directory_.path()});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(read("page.md"), HasSubstr("slow against A: \\+10.00 %"));
}

// Where it ran is known, and going on elsewhere is noticed.
TEST_F(CompareCli, AnotherMachineIsNoticed) {
  const Json json = compare_json({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "1"}, 2);
  ASSERT_EQ(json["sessions"].size(), 1U);
  const std::string kernel = json["sessions"][0]["kernel"];
  EXPECT_FALSE(kernel.empty());
  EXPECT_FALSE(std::string(json["sessions"][0]["assay"]).empty());
  std::string journal = read("x/runs.jsonl");
  const std::size_t at = journal.find("\"kernel\":\"");
  ASSERT_NE(at, std::string::npos);
  journal.insert(at + 10, "not-");
  write("x/runs.jsonl", journal);
  const auto resumed = compare({"--resume", "x", "--max-pairs", "2"});
  EXPECT_THAT(resumed.out,
              HasSubstr("with another kernel: " + kernel + " instead of not-" + kernel));
}

// Zero would look like a value.
TEST_F(CompareCli, AnArmWithoutAValueHasNull) {
  const Json json = compare_json({"--a", "false", "--b", "true"}, 3);
  EXPECT_EQ(json["arms"][1]["runs"], 0);
  for (const char* key : {"median", "least", "most", "noise_pct", "wall_s", "cpu_s"}) {
    EXPECT_TRUE(json["arms"][1][key].is_null()) << key;
  }
  EXPECT_TRUE(json["comparisons"][0]["ratio"].is_null());
  EXPECT_TRUE(json["comparisons"][0]["drift"].is_null());
}

TEST_F(CompareCli, RunsAndVerdictsAreExported) {
  const auto outcome =
      compare({"--a", kA, "--b", "echo took 204 '|'", "--metric", kTook, "--max-pairs", "6",
               "--export", "r.csv", "--export", "r.md", "--export", "r.json", "-o", "x"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2.0 × as much"));
  const std::string csv = read("r.csv");
  EXPECT_THAT(csv, StartsWith("run,block,arm,started,wall_s,cpu_s,metric,value,quality,warm_up,"
                              "paired,marks,failure\n1,0,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 6 * 3);
  const std::string page = read("r.md");
  EXPECT_THAT(page, StartsWith("| arm | command | runs | median | effect | 95 % interval | ratio | "
                               "verdict |\n|---|---|---|---|---|---|---|---|\n| A | "));
  EXPECT_THAT(page, HasSubstr("| B | `echo took 204 '\\|'` | 6 | 204 | +104.00 % | +104.00 % to "
                              "+104.00 % | 2.0 × as much | FAIL |\n"));
  EXPECT_EQ(read("r.json"), read("x/result.json"));
  refused({"--a", kA, "--b", kB, "--export", "r.txt"},
          "--export: 'r.txt' has an unknown format; .csv for every run, .md for a table of the "
          "verdicts, .json for everything");
  // A failed run is a row too.
  EXPECT_EQ(compare({"--a", "true", "--b", "false", "--export", "f.csv"}).exit_code, 3);
  EXPECT_THAT(read("f.csv"), HasSubstr(",false,false,,exited with 1"));
}

// One command: an arm per value, all against the first, and nothing to judge without a margin.
TEST_F(CompareCli, AScanOfOneCommandHasAnArmPerValue) {
  const std::vector<std::string> scan = {"--scan", "N=100,50,200", "--metric",
                                         kTook,    "--max-pairs",  "6"};
  std::vector<std::string> text = scan;
  text.insert(text.end(), {"-o", "s", "--export", "s.csv", "--", "echo took {N}"});
  const auto outcome = compare(text);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("against N=100"), HasSubstr("2.0 × less"),
                                 HasSubstr("least: N=50, 2.0 × less than N=100")));
  EXPECT_THAT(read("s.csv"), StartsWith("N,run,block,arm,"));
  const auto resumed = compare({"--resume", "s", "--max-pairs", "7", "--json"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  const Json json = Json::parse(resumed.out);
  EXPECT_EQ(json["verdict"], "NOT JUDGED");
  EXPECT_EQ(json["pairs"], 7);
  EXPECT_EQ(json["scanned"], Json::parse(R"(["N"])"));
  EXPECT_EQ(json["arms"][2]["values"], Json::parse(R"(["200"])"));
  EXPECT_NEAR(json["comparisons"][1]["ratio"].get<double>(), 2, 1e-9);
  // With a margin it is a verdict.
  text = scan;
  text.insert(text.end(), {"--margin", "5%", "-o", "t", "--", "echo", "took", "{N}"});
  EXPECT_EQ(compare(text).exit_code, 1);
}

TEST_F(CompareCli, AScanOfTwoCommandsHasAnExperimentPerValue) {
  write("b.sh", "test $1 = 1 || test -e good || exit 7; echo took 102\n");
  const std::vector<std::string> scan = {
      "--scan",      "N=1,2",       "--a",      "echo took 100 # {N}",
      "--b",         "sh b.sh {N}", "--metric", kTook,
      "--max-pairs", "6",           "--margin", "5%"};
  std::vector<std::string> first = scan;
  first.insert(first.end(), {"-o", "s"});
  const auto failed = compare(first);
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_THAT(failed.out, HasSubstr("PASS"));
  const int kept = runs_in("s/N=1/runs.jsonl");
  EXPECT_EQ(kept, 18);
  write("good", "");
  const auto resumed = compare({"--resume", "s", "--json", "--export", "s.md"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  const Json json = Json::parse(resumed.out);
  EXPECT_EQ(json["verdict"], "PASS");
  ASSERT_EQ(json["experiments"].size(), 2U);
  EXPECT_EQ(json["experiments"][1]["values"], Json::parse(R"(["2"])"));
  EXPECT_EQ(json["experiments"][1]["pairs"], 6);
  EXPECT_EQ(runs_in("s/N=1/runs.jsonl"), kept);  // it was finished
  EXPECT_EQ(Json::parse(read("s/result.json")), json);
  EXPECT_THAT(read("s.md"), HasSubstr("| 2 | B | `sh b.sh 2` | 6 | 102 |"));
  refused(first, (directory_.path() / "s").string() +
                     ": has a scan already; continue it with --resume, or choose another folder");
  refused({"--scan", "M=1,2", "--a", kA, "--b", kB},
          "--scan: no command contains '{M}'; write {M} where its value belongs");
  refused({"--scan", "N", "--a", "echo {N}"},
          "--scan: 'N' is not NAME=VALUE,VALUE…; --scan N=1,2,4, with {N} in the command");
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

// A failed point names the folder that --resume takes, and the report takes it too.
TEST_F(CompareCli, AScanThatFailedIsNamedByItsFolder) {
  write("a.sh",
        "echo took 100; test $1 = 1 || { echo x >> count; test $(wc -l < count) -lt 9; }\n");
  const auto outcome =
      compare({"--scan", "N=1,0,2", "--a", "sh a.sh {N}", "--b", "echo took 102", "--metric", kTook,
               "--max-pairs", "6", "--export", "s.md", "-o", "s"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(
      outcome.err,
      AllOf(HasSubstr("arm A"), EndsWith("--resume " + (directory_.path() / "s").string() + "\n")));
  const Json result = Json::parse(read("s/result.json"));
  EXPECT_TRUE(result["verdict"].is_null());
  EXPECT_THAT(std::string(result["failure"]), HasSubstr("exited with 1"));
  EXPECT_THAT(read("s.md"), AllOf(HasSubstr("- N=1: noise floor 0.00 %"),
                                  HasSubstr("- N=0: **run "), HasSubstr("exited with 1")));
  const auto report = support::run(
      {{support::program(), "report", "s", "--format", "json"}, "", directory_.path()});
  ASSERT_EQ(report.exit_code, 0) << report.err;
  const Json parts = Json::parse(report.out)["parts"];
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0]["kind"], "scan");
  EXPECT_EQ(parts[0]["title"], "echo took 102 against sh a.sh {N} for N = 1, 0");
  EXPECT_EQ(parts[0]["verdict"], "NO VERDICT");
  EXPECT_THAT(std::string(parts[0]["verdict_text"]), StartsWith("N=0: run "));
  EXPECT_EQ(parts[0]["sections"][0]["blocks"][0]["columns"][0], "N");
  EXPECT_EQ(parts[1]["title"], "N=1: echo took 102 against sh a.sh 1");
  EXPECT_EQ(parts[1]["verdict"], "FAIL");
}

TEST_F(CompareCli, ADamagedScanIsOneLine) {
  fs::create_directory(directory_.path() / "s");
  write("s/scan.json", R"({"scanned": ["N"], "points": []})");
  const auto outcome = compare({"--resume", "s"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("scan.json: is not a scan\n"));
}

TEST_F(CompareCli, AnExperimentFileMayHaveAScan) {
  write("e.toml",
        "metric = \"regex:took ([0-9]+)\"\nmax_pairs = 6\nscan = {N = [100, 50]}\n"
        "[[arm]]\nname = \"x\"\ncommand = \"echo took {N}\"\n");
  const auto outcome = compare({"--file", "e.toml", "--scan", "N=200,100"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("least: N=100, 2.0 × less than N=200"));
  const auto own = compare({"--file", "e.toml"});
  EXPECT_THAT(own.out, AllOf(HasSubstr("least: N=50, 2.0 × less than N=100"),
                             HasSubstr("N=100': N=100 once more in every block")));
  write("e.toml", "scan = {N = [\"\"]}\n[[arm]]\nname = \"x\"\ncommand = \"echo {N}\"\n");
  refused({"--file", "e.toml"},
          "e.toml:1: scan.N has an empty or quoted value; scan = {N = [1, 2, 4]}, with {N} in the "
          "commands");
}

TEST_F(CompareCli, APassSaysWhatIsExcluded) {
  EXPECT_THAT(compare({"--a", kA, "--b", "echo took 103 s", "--metric", kTook, "--max-pairs", "6",
                       "--more-is-better"})
                  .out,
              HasSubstr("PASS: +3.00 %; worse than -1 % is excluded\n"));
}

TEST_F(CompareCli, TablesFitAHundredColumns) {
  const auto outcome =
      compare({"--a", kA, "--b", kB, "--metric", kTook, "--max-pairs", "6", "-o", "x"});
  std::istringstream lines(outcome.out);
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    if (line.starts_with("- ")) continue;  // a warning
    EXPECT_LE(base::display_width(line), 100U) << line;
  }
  EXPECT_GT(rows, 10);
  EXPECT_THAT(outcome.out, HasSubstr("FAIL: the interval is beyond a margin of 1 %"));
}

}  // namespace
}  // namespace assay
