// `assay train`, on one rank and on three, told to stop or robbed of `assay` itself: it answers
// while the step still runs, and never trains on unrecorded.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <sstream>
#include <thread>

#include "chaos/project.h"

namespace assay::chaos {
namespace {

using base::Json;
using ::testing::HasSubstr;

// Children of `parent` with this name.
std::vector<pid_t> children_named(pid_t parent, const std::string& name) {
  const auto task = fmt::format("/proc/{}/task/{}/children", parent, parent);
  std::vector<pid_t> found;
  std::istringstream pids(read_file(task));
  for (pid_t pid = 0; pids >> pid;) {
    if (read_file(fmt::format("/proc/{}/comm", pid)) == name + "\n") found.push_back(pid);
  }
  return found;
}

bool is_alive(pid_t pid) {
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid));
  return !stat.empty() && stat.find(") Z ") == std::string::npos;
}

class TrainKill : public ::testing::TestWithParam<int> {
 protected:
  std::vector<std::string> command(const std::vector<std::string>& more) const {
    std::vector<std::string> list = {
        support::program(), "train", "demo", "--device", "cpu", "--out", "run", "--quiet"};
    std::vector<std::string> sets = {"model.dim=32",      "model.layers=2",     "model.heads=4",
                                     "model.kv_heads=2",  "model.ffn=64",       "model.context=32",
                                     "batch.sequence=32", "train.steps=1000000"};
    sets.push_back(fmt::format("layout.fsdp={}", GetParam()));
    sets.insert(sets.end(), more.begin(), more.end());
    for (const std::string& set : sets) list.insert(list.end(), {"--set", set});
    return list;
  }
  // Of this run: the trainer, or the launcher with its ranks.
  std::vector<pid_t> trainers(pid_t collector) const {
    std::vector<pid_t> all = children_named(collector, "assay-train");
    if (GetParam() == 1 || all.empty()) return all;
    const std::vector<pid_t> ranks = children_named(all.front(), "assay-train");
    all.insert(all.end(), ranks.begin(), ranks.end());
    return all;
  }
  [[nodiscard]] std::size_t processes() const {
    return GetParam() == 1 ? 1U : static_cast<std::size_t>(GetParam()) + 1U;
  }
};

TEST_P(TrainKill, WithoutAssayItStopsWithACheckpointAndIsRecorded) {
  const Project project;
  Background background(command({"checkpoint.every=5", "checkpoint.keep=2"}), project.path());
  const pid_t collector = await_child(background.pid(), kCollector);
  ASSERT_NE(collector, 0) << background.err();
  const auto checkpoints = project.path() / "run" / "checkpoints";
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(checkpoints / "step-5"); }))
      << background.err();
  const std::vector<pid_t> pids = trainers(collector);
  ASSERT_EQ(pids.size(), processes());
  ::kill(background.pid(), SIGKILL);
  ASSERT_TRUE(background.wait());
  for (const pid_t pid : pids) EXPECT_TRUE(eventually([&] { return !is_alive(pid); })) << pid;
  const Json shown = project.finished_run();
  ASSERT_TRUE(shown.is_object());
  EXPECT_EQ(shown["run"]["status"], "interrupted");
  EXPECT_EQ(shown["run"]["exit_code"], 0);
  EXPECT_TRUE(shown["run"]["complete"].get<bool>()) << shown["missed"];
  // Up to the last step, of which there is a checkpoint, with lineage.
  const std::vector<std::string> metrics = lines(read_file(project.path() / "run/metrics.jsonl"));
  ASSERT_FALSE(metrics.empty());
  const std::string last =
      fmt::format("run/checkpoints/step-{}", Json::parse(metrics.back())["step"].get<int>());
  EXPECT_EQ(project.assay({"checkpoint", "verify", last}).exit_code, 0) << last;
  EXPECT_THAT(shown["outputs"].dump(), HasSubstr(last + "/manifest.json"));
}

TEST_P(TrainKill, IsAnsweredWhileTheStepRuns) {
  const Project project;
  // Steps of two seconds and more; the only checkpoint is the last.
  Background background(
      command({GetParam() == 1 ? "batch.accumulate=2000" : "batch.accumulate=500"}),
      project.path());
  const auto metrics = project.path() / "run" / "metrics.jsonl";
  ASSERT_TRUE(eventually([&] { return !read_file(metrics).empty(); }, std::chrono::minutes(2)))
      << background.err();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // into the next step
  const std::string before = read_file(metrics);
  ::kill(background.pid(), SIGTERM);
  EXPECT_TRUE(eventually([&] { return !background.err().empty(); }));
  EXPECT_THAT(background.err(),
              ::testing::ContainsRegex("^assay: SIGTERM: stopping after step [0-9]+ \\([0-9]+ of "
                                       "about [0-9]+ s done\\), then a checkpoint; Ctrl-C stops at "
                                       "once, without one\n$"));
  EXPECT_EQ(read_file(metrics), before);
  // Ctrl-C in a terminal reaches the whole group.
  ::kill(-background.pid(), SIGINT);
  const auto status = background.wait();
  ASSERT_TRUE(status);
  EXPECT_FALSE(std::filesystem::exists(project.path() / "run/checkpoints/step-2"));
  EXPECT_THAT(background.err(), HasSubstr("\nassay: Ctrl-C: stopped without a checkpoint; "));
}

INSTANTIATE_TEST_SUITE_P(Ranks, TrainKill, ::testing::Values(1, 3));

}  // namespace
}  // namespace assay::chaos
