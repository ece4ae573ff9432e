#include "lineage/refresh/stage_order.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>

#include "lineage/testing/random_runs.h"
#include "store/run_dependencies.h"
#include "store/testing/runs.h"

namespace assay::lineage {
namespace {

using store::RunRecord;
using store::testing::run_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

LiveStages numbered(std::vector<RunRecord> runs, const std::vector<store::RunId>& ids = {}) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].stage = static_cast<std::int64_t>(i + 1);
    runs[i].id = ids.empty() ? runs[i].stage : ids[i];
  }
  return LiveStages(std::move(runs));
}

LiveStages described(const std::vector<std::string>& descriptions,
                     const std::vector<store::RunId>& ids = {}) {
  std::vector<RunRecord> runs;
  for (const std::string& description : descriptions) runs.push_back(run_of(description));
  return numbered(std::move(runs), ids);
}

TEST(StageOrder, ProducersComeFirstWhateverTheirNumbers) {
  const StageOrder order(described({"c y=1 -> z=1", "b x=1 -> y=1", "a -> x=1"}, {9, 5, 4}));
  EXPECT_THAT(order.order(), ElementsAre(2, 1, 0));
  EXPECT_THAT(order.before(0), ElementsAre(1));
  EXPECT_THAT(order.with_makers({1}), ElementsAre(1, 2));
}

TEST(StageOrder, IndependentStagesMayRunTogether) {
  const StageOrder order(described({"a raw=1 -> x=1", "b raw=1 -> y=1", "c x=1 y=1 -> z=1"}));
  EXPECT_THAT(order.before(1), IsEmpty());
  EXPECT_THAT(order.before(2), ElementsAre(0, 1));
}

// Stage 1 ran again by hand, so that by path it feeds all others.
TEST(StageOrder, ChangesInPlaceKeepTheirOrder) {
  const StageOrder order(described(
      {"seq -> log=1", "add log=1 -> ~log<1=2", "sed log=2 -> ~log<2=3", "wc log=3 -> n=1"},
      {9, 2, 3, 4}));
  EXPECT_THAT(order.order(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(order.before(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(order.with_makers({3}), ElementsAre(0, 1, 2, 3));
}

TEST(StageOrder, ASharedLogIsNoReasonToWait) {
  std::vector<RunRecord> runs = {run_of("a in=1 -> x=1 ~log=1"), run_of("b in=1 -> y=1 ~log=2")};
  for (RunRecord& run : runs) {
    run.redirects = {"1>>/project/log"};
    run.streams = {run.outputs.back()};
    run.outputs.pop_back();
  }
  EXPECT_THAT(StageOrder(numbered(std::move(runs))).before(1), IsEmpty());
}

TEST(StageOrder, CyclesEnd) {
  const StageOrder order(described({"a y=1 -> x=1", "b x=1 -> y=1"}));
  EXPECT_THAT(order.order(), ElementsAre(0, 1));
}

// A disk on which a stage leaves a digest of what it is and what it reads.
using Disk = std::map<std::string, std::string>;

void run_on(Disk& disk, const LiveStages& stages, std::size_t stage) {
  const RunRecord& run = stages.runs()[stage];
  std::string state = std::to_string(stage);
  for (const store::Input& input : store::dependencies_of(run)) {
    state += "|" + input.path + "=" + disk[input.path];
  }
  for (const store::Output& output : run.outputs) {
    const std::string moved = output.from.empty() ? "" : disk[output.from];
    if (!output.from.empty()) disk[output.from] = "gone";
    disk[output.path] = std::to_string(std::hash<std::string>{}(state + "|" + moved));
  }
}

// Every schedule in which a stage starts after those before it leaves the same files.
RC_GTEST_PROP(StageOrderProperty, EveryScheduleItAllowsLeavesTheSame, ()) {
  std::vector<store::RunId> ids;
  std::vector<RunRecord> runs = *testing::random_runs();
  for (std::size_t i = 0; i < runs.size(); ++i) ids.push_back(static_cast<store::RunId>(i + 1));
  for (std::size_t i = ids.size(); i > 1; --i) {
    std::swap(ids[i - 1], ids[*rc::gen::inRange<std::size_t>(0, i)]);
  }
  const LiveStages stages = numbered(std::move(runs), ids);
  const StageOrder order(stages);
  Disk expected;
  for (const std::size_t stage : order.order()) run_on(expected, stages, stage);

  Disk disk;
  std::set<std::size_t> done;
  while (done.size() < stages.runs().size()) {
    std::vector<std::size_t> startable;
    for (std::size_t stage = 0; stage < stages.runs().size(); ++stage) {
      const auto& before = order.before(stage);
      const bool free = std::all_of(before.begin(), before.end(),
                                    [&](std::size_t other) { return done.contains(other); });
      if (free && !done.contains(stage)) startable.push_back(stage);
    }
    RC_ASSERT(!startable.empty());
    const std::size_t stage = startable[*rc::gen::inRange<std::size_t>(0, startable.size())];
    run_on(disk, stages, stage);
    done.insert(stage);
  }
  RC_ASSERT(disk == expected);
}

}  // namespace
}  // namespace assay::lineage
