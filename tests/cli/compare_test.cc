// `assay compare` from the command line: verdicts as exit codes, arms, metrics, exports and scans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/text.h"
#include "cli/compare_fixture.h"
#include "support/process.h"

namespace assay {
namespace {

using base::Json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

TEST_F(CompareCli, TheArmThatDecidedIsNamed) {
  const std::vector<std::string> arms = {"--a",         kA,
                                         "--arm",       "ok=echo took 100",
                                         "--arm",       "slow=echo took 110",
                                         "--metric",    kTook,
                                         "--max-pairs", "8",
                                         "--margin",    "1%"};
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

// Without a margin the question is the order; every way of showing the result answers it.
TEST_F(CompareCli, TheOrderOfThreeArms) {
  const std::vector<std::string> arms = {"--a",         kA,
                                         "--arm",       "slow=echo took 110",
                                         "--arm",       "quick=echo took 90",
                                         "--arm",       "same=echo took 90",
                                         "--metric",    kTook,
                                         "--max-pairs", "12",
                                         "--export",    "r.md",
                                         "-o",          "y"};
  const std::string line = "least: quick or same; order: quick or same, then A, then slow";
  const auto outcome = compare(arms);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\n" + line));
  EXPECT_THAT(outcome.out, HasSubstr("\nquick against slow  -18.18 %  1.22 × less"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("margin")));
  EXPECT_THAT(read("r.md"), HasSubstr(line));
  EXPECT_THAT(read("r.md"), HasSubstr("| quick against slow | -18.18 % | "));
  const Json json = Json::parse(read("y/result.json"));
  EXPECT_EQ(json["order"], Json::parse(R"([["quick", "same"], ["A"], ["slow"]])"));
  ASSERT_EQ(json["all_pairs"].size(), 6U);
  EXPECT_EQ(json["all_pairs"][3]["arm"], "quick");
  EXPECT_EQ(json["all_pairs"][3]["against"], "slow");
  EXPECT_TRUE(json["all_pairs"][3]["differ"].get<bool>());
  EXPECT_NEAR(json["all_pairs"][3]["ci_high_pct"].get<double>(), -18.18, 0.01);
  EXPECT_FALSE(json["all_pairs"][5]["differ"].get<bool>());
  const auto page =
      support::run({{support::program(), "report", "y", "-o", "page.html"}, "", directory_.path()});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_THAT(read("page.html"), HasSubstr("least: quick or same; order: "));
  EXPECT_THAT(read("page.html"), HasSubstr("quick against slow"));
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
  EXPECT_EQ(compare({"--a", "true", "--b", "false `true`", "--export", "f.csv", "--export", "f.md"})
                .exit_code,
            3);
  EXPECT_THAT(read("f.csv"), HasSubstr(",false,false,,exited with 1"));
  // Backticks of a command do not end it.
  EXPECT_THAT(read("f.md"), HasSubstr("| B | `` false `true` `` | 0 |"));
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
  EXPECT_EQ(json["best"], Json::parse(R"(["N=50"])"));
  // Equal values: neither is the least, in text, JSON and Markdown alike.
  const auto tied = compare({"--scan", "N=100,50,50.0", "--metric", kTook, "--max-pairs", "6", "-o",
                             "tied", "--export", "tied.md", "--", "echo took {N}"});
  EXPECT_EQ(tied.exit_code, 0) << tied.err;
  const std::string line =
      "least: N=50 or N=50.0, not distinguishable: the interval of their difference includes 0";
  EXPECT_THAT(tied.out, HasSubstr(line));
  EXPECT_THAT(read("tied.md"), HasSubstr(line));
  EXPECT_EQ(Json::parse(compare({"--resume", "tied", "--max-pairs", "7", "--json"}).out)["best"],
            Json::parse(R"(["N=50", "N=50.0"])"));
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
  refused(first,
          (directory_.path() / "s").string() +
              ": already contains a scan; continue it with --resume, or choose another folder");
  refused({"--scan", "M=1,2", "--a", kA, "--b", kB},
          "--scan: no command contains '{M}'; write {M} where its value belongs");
  refused({"--scan", "N", "--a", "echo {N}"},
          "--scan: 'N' is not NAME=VALUE,VALUE…; --scan N=1,2,4, with {N} in the command");
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

TEST_F(CompareCli, AnExperimentFileMayHaveAScan) {
  write("e.toml",
        "metric = \"regex:took ([0-9]+)\"\nmax_pairs = 6\nscan = {N = [100, 50]}\n"
        "[[arm]]\nname = \"x\"\ncommand = \"echo took {N}\"\n");
  const auto outcome = compare({"--file", "e.toml", "--scan", "N=200,100"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("least: N=100, 2.0 × less than N=200"));
  const auto own = compare({"--file", "e.toml"});
  EXPECT_THAT(own.out, AllOf(HasSubstr("least: N=50, 2.0 × less than N=100"),
                             HasSubstr("N=100': N=100 run a second time in every block")));
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
