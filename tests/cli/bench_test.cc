// `assay bench` from the command line: suites that run, labels that are true, and one line for
// mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class BenchCli : public ::testing::Test {
 protected:
  support::ProcessResult bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {support::program(), "bench"});
    return support::run({arguments, "", directory_.path()});
  }
  Json bench_json(std::vector<std::string> arguments, int exit_code) {
    arguments.insert(arguments.end(), {"--json"});
    const auto outcome = bench(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.out << outcome.err;
    return Json::parse(outcome.out);
  }
  void refused(const std::vector<std::string>& arguments, const std::string& line) {
    const auto outcome = bench(arguments);
    EXPECT_EQ(outcome.exit_code, 64) << outcome.out;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(outcome.err, "assay: " + line + "\n");
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.path() / name) << text;
  }
  static const Json& figure(const Json& result, const std::string& what) {
    for (const Json& each : result["figures"]) {
      if (each["what"] == what) return each;
    }
    ADD_FAILURE() << what;
    return result["figures"][0];
  }
  static const Json& case_of(const Json& result, const std::string& name) {
    for (const Json& each : result["cases"]) {
      if (each["case"] == name) return each;
    }
    ADD_FAILURE() << name;
    return result["cases"][0];
  }
  base::testing::TempDir directory_;
};

// What holds of every result: labels follow from cases, and nothing has a number that was not made.
void check_result(const Json& result) {
  for (const Json& each : result["figures"]) {
    for (const Json& ours : each["ours"]) {
      const std::set<std::string> with_value = {"measured", "planned", "recorded"};
      EXPECT_EQ(with_value.contains(ours["label"]), ours["value"].is_number()) << each.dump();
      EXPECT_TRUE(ours["value"].is_number() || ours["remark"] != "") << each.dump();
    }
  }
  for (const Json& table : result["tables"]) {
    EXPECT_TRUE(table["note"].is_string());
    for (const Json& row : table["rows"]) ASSERT_EQ(row.size(), table["columns"].size());
  }
  for (const Json& goal : result["goals"]) {
    for (const char* key : {"what", "goal", "measured", "unit", "verdict", "note"}) {
      EXPECT_TRUE(goal.contains(key)) << key;
    }
    EXPECT_TRUE(goal["label"] != "planned" || goal["measured"].is_null()) << goal.dump();
  }
  EXPECT_TRUE(result["machine"].is_object());
}

TEST_F(BenchCli, ListsSuites) {
  const auto outcome = bench({});
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* name :
       {"interconnect", "mfu-scaling", "slow-down", "survival", "tracer-overhead"}) {
    EXPECT_THAT(outcome.out, HasSubstr(name));
  }
  const Json list = bench_json({}, 0);
  EXPECT_EQ(list["suites"].size(), 5U);
  for (const Json& suite : list["suites"]) {
    EXPECT_EQ(suite["missing"].empty(), suite["cases"] == suite["cases_here"]) << suite.dump();
  }
}

TEST_F(BenchCli, PlannedSuitesPlan) {
  const Json interconnect = bench_json({"interconnect", "-o", "x"}, 0);
  check_result(interconnect);
  const Json& sxm = figure(interconnect, "SXM (NVSwitch)");
  EXPECT_EQ(sxm["published"], 701.9);
  EXPECT_EQ(sxm["ours"][0]["label"], "not possible here");
  EXPECT_EQ(sxm["ours"][1]["label"], "planned");
  // As `assay plan` says, to the last bit.
  const auto plan =
      support::run({{support::program(), "plan", "nanochat-d26-h100", "--json"}, "", {}});
  const Json planned = Json::parse(plan.out);
  EXPECT_EQ(sxm["ours"][1]["value"], planned["step_s"].get<double>() * 1000);
  // The suite names groups and collectives by their place in the plan.
  const std::vector<std::string> groups = {
      "embedding",    "value_embeddings", "residual_lambdas", "embedding_lambdas", "head",
      "muon 13 x 32", "muon 1664 x 1664", "muon 1664 x 6656", "muon 6656 x 1664"};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    EXPECT_EQ(planned["comm_groups"][i]["group"], groups[i]);
  }
  const std::vector<std::string> collectives = {"reduce_scatter bf16", "reduce_scatter f32",
                                                "all_reduce f32", "all_gather bf16",
                                                "all_gather f32"};
  double gathers = 0;
  double gathered = 0;
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    const Json& each = planned["collectives"][i];
    EXPECT_EQ(each["op"].get<std::string>() + " " + each["dtype"].get<std::string>(),
              collectives[i]);
    if (each["op"] != "all_gather") continue;
    gathers += each["calls"].get<double>();
    gathered += each["bytes"].get<double>();
  }
  EXPECT_EQ(gathers, 19);
  // Calls that the suite prices are as large as the plan's mean.
  EXPECT_NEAR(gathered / gathers, 301.7e6, 0.05e6);
  EXPECT_NEAR(planned["collectives"][1]["mean_bytes"].get<double>(), 841.1e6, 0.05e6);
  // One plan's figure by another's.
  const Json pcie = Json::parse(
      support::run({{support::program(), "plan", "nanochat-d26-h100-pcie", "--json"}, "", {}}).out);
  EXPECT_EQ(figure(interconnect, "step: PCIe / SXM")["ours"][0]["value"],
            pcie["step_s"].get<double>() / planned["step_s"].get<double>());
  std::ifstream file(directory_.path() / "x/result.json");
  EXPECT_EQ(Json::parse(file), interconnect);
  EXPECT_THAT(bench({"--resume", "x"}).out, HasSubstr("planned, in the fit"));

  // One of the published steps is predicted less well than its goal asks, and the suite says so.
  const Json mfu = bench_json({"mfu-scaling", "--quick", "-o", "y"}, 1);
  check_result(mfu);
  std::vector<std::string> missed;
  for (const Json& each : mfu["goals"])
    if (each["verdict"] == "FAIL") missed.push_back(each["what"]);
  EXPECT_THAT(missed, ElementsAre("MFU, embedding counted, full recomputation: 1 GPU, 7B, "
                                  "one rank"));
  for (const Json& each : mfu["figures"]) {
    for (const Json& ours : each["ours"]) {
      EXPECT_EQ(ours["label"] == "recorded", ours["command"].is_string()) << each.dump();
    }
  }
  const std::string kept = (directory_.path() / "y").string();
  refused({"mfu-scaling", "-o", "y"}, kept +
                                          ": already contains a suite run; assay bench --resume " +
                                          kept + ", or name another folder");
}

TEST_F(BenchCli, SurvivalQuick) {
  const Json result = bench_json({"survival", "--quick", "-o", "x"}, 0);
  check_result(result);
  for (const char* name : {"checkpoint", "killed", "preempted", "spot", "whole"}) {
    EXPECT_EQ(case_of(result, name)["state"], "done") << name << case_of(result, name).dump();
  }
  for (const char* same :
       {"weights and moments that differ from an undisturbed run's, after kill -9",
        "the same, after a preemption"}) {
    EXPECT_EQ(figure(result, same)["ours"][0]["value"], 0) << same;
  }
  EXPECT_GT(figure(result, "save, s")["ours"][0]["value"], 0);
  // The disk gives what is read, unless memory is the disk.
  struct statfs disk {};
  ASSERT_EQ(::statfs(directory_.path().c_str(), &disk), 0);
  const Json& cached = figure(result, "of it in the page cache when reading begins, MB")["ours"][0];
  if (disk.f_type != TMPFS_MAGIC && cached["label"] == "measured") {
    EXPECT_EQ(cached["value"], 0);
  }
  EXPECT_EQ(figure(result, "1T tokens")["ours"][0]["label"], "planned");
  const auto printed = [&](const char* name) {
    std::ifstream file(directory_.path() / "x" /
                       case_of(result, name)["outputs"][0].get<std::string>());
    return Json::parse(file);
  };
  // The search's second candidate is the one on spot machines, and so is the plan's first cost.
  const Json spot = printed("spot");
  EXPECT_EQ(spot["candidates"][0]["policy"], "on demand");
  EXPECT_EQ(spot["candidates"][1]["policy"], "spot");
  const Json whole = printed("whole");
  EXPECT_EQ(whole["cost"].size(), 2U);
  EXPECT_EQ(whole["cost"][0]["market"], "spot");
  EXPECT_EQ(whole["cost"][1]["market"], "on-demand");
  // Throughput is tokens of a step over its time: the tokens stand in the suite.
  for (const auto& [what, plan] :
       {std::pair("GPT-7B", "whole"),
        {"GPT-7B, their best configuration: micro-batch 1, accumulated 8", "best"},
        {"LLaMA-13B", "13b"},
        {"Custom-30B", "30b"},
        {"1 node, 8 GPUs", "1-node"},
        {"2 nodes, 16 GPUs", "2-nodes"},
        {"8 nodes, 64 GPUs", "8-nodes"},
        {"16 nodes, 128 GPUs", "16-nodes"}}) {
    EXPECT_NEAR(figure(result, what)["ours"][0]["value"].get<double>() /
                    printed(plan)["tokens_per_s"].get<double>(),
                1, 1e-9)
        << what;
  }
  // Relative to DDP by way of FSDP, which is published as 0.92 of it.
  EXPECT_EQ(figure(result, "FSDP")["ours"][0]["label"], "not possible here");
  for (const auto& [what, plan] : {std::pair("pipeline parallel, ours pp 4 x dp 8", "pipeline"),
                                   {"tensor parallel, ours tp 8 x dp 4", "tensor"},
                                   {"3D parallel, ours tp 4 x pp 2 x dp 4", "three-d"}}) {
    EXPECT_NEAR(
        figure(result, what)["ours"][0]["value"].get<double>(),
        0.92 * printed(plan)["tokens_per_s"].get<double>() / whole["tokens_per_s"].get<double>(),
        1e-9)
        << what;
  }
  // As the suite says of these two.
  EXPECT_EQ(printed("175b")["memory_gib"]["fits"], false);
  EXPECT_EQ(printed("ddp")["memory_gib"]["fits"], false);
  // Runs recorded by cases are not in the user's project.
  EXPECT_FALSE(fs::exists(directory_.path() / ".assay"));
}

TEST_F(BenchCli, TracerOverheadQuick) {
  if (support::program_is_sanitized())
    GTEST_SKIP() << "no leaks can be looked for in what is traced";
  const Json result = bench_json({"tracer-overhead", "--quick", "-o", "x"}, 0);
  check_result(result);
  EXPECT_EQ(result["quick"], true);
  int measured = 0;
  for (const char* tracer : {"preload", "ptrace"}) {
    const Json& ran = case_of(result, std::string("small-") + tracer);
    if (ran["state"] == "not possible here") continue;
    ASSERT_EQ(ran["state"], "done") << ran.dump();
    const Json& added = figure(result, std::string("d12 / small, ") + tracer);
    EXPECT_EQ(added["ours"][0]["label"], "measured");
    ++measured;
  }
  EXPECT_GT(measured, 0);
  EXPECT_EQ(case_of(result, "large-preload")["state"], "left out");
  for (const Json& goal : result["goals"]) EXPECT_EQ(goal["verdict"], "NOT JUDGED");
  const Json& recorded = figure(result, "d12 / small, preload")["ours"][1];
  EXPECT_EQ(recorded["low"], -0.29);
  EXPECT_EQ(recorded["high"], 0.13);
}

TEST_F(BenchCli, SlowDownQuick) {
  const Json result = bench_json({"slow-down", "--quick", "-o", "x"}, 0);
  check_result(result);
  for (const Json& goal : result["goals"]) {
    EXPECT_TRUE(goal["label"] != "measured" || goal["verdict"] == "NOT JUDGED") << goal.dump();
  }
  for (const Json& ran : result["cases"]) {
    EXPECT_THAT(ran["state"], ::testing::AnyOf("done", "not possible here")) << ran.dump();
  }
}

TEST_F(BenchCli, BadInput) {
  refused({"survivel"}, "bench: unknown suite 'survivel'; did you mean 'survival'?");
  refused({"--quick"},
          "bench: no suite given; one of interconnect, mfu-scaling, slow-down, survival, "
          "tracer-overhead");
  write("bad.toml", "title = \"x\"\n[[case]]\nname = \"a\"\ncomand = \"true\"\n");
  refused({"bad.toml"},
          "bad.toml:2: case 'a' has no action; give it plan, rows, collective, compare or command");
  write("bad.toml",
        "title = \"x\"\n[[case]]\nname = \"a\"\ncompare = \"metrik = 'wall'\"\n"
        "[[table]]\ntitle = \"t\"\nvalue = \"json:effect_pct\"\n"
        "figures = [ { what = \"w\", measured = \"a\" } ]\n");
  refused({"bad.toml", "-o", "z"},
          "bad.toml:4: case 'a':1: unknown key 'metrik'; did you mean 'metric'?");
  EXPECT_FALSE(fs::exists(directory_.path() / "z"));
  fs::create_directory(directory_.path() / "empty");
  const std::string empty = (directory_.path() / "empty").string();
  refused({"--resume", empty},
          empty + ": contains no suite run; --resume takes the folder of an earlier run");
  refused({"--resume", "x", "--quick"},
          "--resume: a resumed run keeps its options; leave --quick and --output out");
  for (const char* bytes : {"\xff\xfe", "[[[[[[[[", "title = '''", "= = =", "title = 9\n"}) {
    write("bad.toml", bytes);
    const auto outcome = bench({"bad.toml"});
    EXPECT_EQ(outcome.exit_code, 64) << bytes;
    EXPECT_THAT(outcome.err, StartsWith("assay: bad.toml"));
  }
}

constexpr const char* kThreeCases = R"toml(title = "three"
[[case]]
name = "first"
command = "echo took 1; echo x >> ../../../../first"
[[case]]
name = "second"
command = "echo trouble >&2; test -e ../../../../mended && echo took 2"
[[case]]
name = "third"
command = "test -e ../../../../mended || sleep 60; echo took 3"
[[table]]
title = "t"
value = "regex:took ([0-9]+)"
figures = [
  { what = "1", measured = "first" },
  { what = "2", measured = "second" },
  { what = "3", measured = "third" },
]
)toml";

TEST_F(BenchCli, AFailingCaseKeepsItsOutputAndAnInterruptedRunGoesOn) {
  write("three.toml", kThreeCases);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::chdir(directory_.path().c_str()) != 0) ::_exit(1);
    ::execl(support::program().c_str(), "assay", "bench", "three.toml", "-o", "x", "--quiet",
            nullptr);
    ::_exit(127);
  }
  // The third case waits until it is interrupted.
  for (int i = 0; i < 3000 && !fs::exists(directory_.path() / "x/out/third.out"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);  // a case failed

  std::ifstream file(directory_.path() / "x/result.json");
  const Json cut = Json::parse(file);
  EXPECT_EQ(cut["complete"], false);
  EXPECT_EQ(figure(cut, "1")["ours"][0]["value"], 1);
  EXPECT_EQ(figure(cut, "2")["ours"][0]["label"], "failed");
  EXPECT_THAT(
      figure(cut, "2")["ours"][0]["remark"].get<std::string>(),
      AllOf(HasSubstr("exited with 1: trouble; its output is in"), HasSubstr("second.err")));
  EXPECT_EQ(figure(cut, "3")["ours"][0]["label"], "not reached");

  write("mended", "");
  const auto resumed = bench({"--resume", "x", "--json"});
  // Without a terminal, a line says which case runs; the first one is kept.
  EXPECT_THAT(resumed.err, AllOf(Not(HasSubstr("case 1 of 3")),
                                 HasSubstr("assay: case 2 of 3: second (command), at most ")));
  const Json whole = Json::parse(resumed.out);
  EXPECT_EQ(whole["complete"], true);
  EXPECT_EQ(figure(whole, "2")["ours"][0]["value"], 2);
  EXPECT_EQ(figure(whole, "3")["ours"][0]["value"], 3);
  std::ifstream ran(directory_.path() / "first");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(ran), {}), "x\n");  // once
}

// Killed, or out of disk space, while the first line of its journal was written.
TEST_F(BenchCli, AnExperimentThatHadHardlyBegunIsStartedAgain) {
  write("one.toml", R"toml(title = "one"
[[case]]
name = "a"
compare = """
metric = "regex:t=([0-9.]+)"
max_pairs = 2
[[arm]]
name = "x"
command = "echo t=1"
[[arm]]
name = "y"
command = "echo t=2"
"""
[[table]]
title = "t"
value = "json:effect_pct"
figures = [ { what = "w", measured = "a" } ]
)toml");
  ASSERT_EQ(bench({"one.toml", "-o", "x"}).exit_code, 0);
  const fs::path journal = directory_.path() / "x/compare/a/runs.jsonl";
  ASSERT_GT(fs::file_size(journal), 100U);
  fs::resize_file(journal, 100);
  fs::remove(directory_.path() / "x/cases/a.json");
  const Json whole = bench_json({"--resume", "x"}, 0);
  EXPECT_EQ(case_of(whole, "a")["state"], "done");
}

// Release 0.1 kept cases as steps.
TEST_F(BenchCli, AFolderOfRelease01IsResumed) {
  write("three.toml", kThreeCases);
  write("mended", "");
  EXPECT_EQ(bench({"three.toml", "-o", "x"}).exit_code, 0);
  std::string suite = kThreeCases;
  for (std::size_t at; (at = suite.find("[[case]]")) != std::string::npos;) {
    suite.replace(at, 8, "[[step]]");
  }
  write("x/suite.toml", suite);
  fs::rename(directory_.path() / "x/cases", directory_.path() / "x/steps");
  fs::remove(directory_.path() / "x/steps/third.json");
  const Json whole = bench_json({"--resume", "x"}, 0);
  EXPECT_EQ(case_of(whole, "third")["state"], "done");
  std::ifstream ran(directory_.path() / "first");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(ran), {}), "x\n");  // once
}

}  // namespace
}  // namespace assay
