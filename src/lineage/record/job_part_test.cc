#include "lineage/record/job_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "lineage/record/recovery.h"
#include "store/run_reader.h"
#include "store/run_row.h"
#include "store/run_writer.h"
#include "store/store.h"
#include "store/testing/runs.h"
#include "store/this_run.h"

namespace assay::lineage {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
namespace fs = std::filesystem;

constexpr const char* kTold = "ASSAY_RUN_OF_RANKS";
constexpr const char* kNote = "ASSAY_RUN_OF_RANKS_NOTE";

// Recorders of a job, whose programs are played by the test.
class JobPartTest : public ::testing::Test {
 protected:
  struct Rank {
    JobPart part;
    base::Environment environment;
  };
  Rank rank(int number, const std::string& recorder) {
    base::Environment environment{"ASSAY_RUN_OF_RANKS=of an enclosing run"};
    auto opened =
        JobPart::open({.rank = number, .ranks = 2, .folder = folder(), .may_be_old = true},
                      recorder, environment);
    EXPECT_TRUE(opened) << opened.error().line();
    if (number > 0) fs::create_directory(opened->spool());
    return {*std::move(opened), std::move(environment)};
  }
  static Part part_of(int number) {
    Part part;
    part.rank = number;
    part.host = "n" + std::to_string(number);
    part.input({"/p/in-" + std::to_string(number), std::nullopt, 0}, {"project", true, ""});
    return part;
  }
  // The programs of both ranks have met.
  static void tell(const Rank& zero, const Rank& other) {
    const auto run = zero.environment.get(kTold);
    EXPECT_TRUE(store::note_joined_run(fs::path(other.environment.get(kNote).value_or("")),
                                       std::string(run.value_or(""))));
  }
  base::Result<void> hand_over(const Rank& rank, int number) {
    const fs::path note(rank.environment.get(kNote).value_or(""));
    auto done = rank.part.hand_over([&] {
      Part part = part_of(number);
      part.output({note, std::nullopt, 0, store::OutputStatus::kCreated, "", {}},
                  {"project", true, ""});
      return part;
    });
    fs::remove_all(rank.part.spool());
    return done;
  }
  static std::vector<std::string> inputs(const Part& part) {
    std::vector<std::string> paths;
    for (const auto& input : part.inputs) paths.push_back(input.what.path);
    return paths;
  }
  fs::path folder() const { return dir_.path() / ".parts-job"; }

  base::testing::TempDir dir_;
};

TEST_F(JobPartTest, RanksThatHaveMetAreOneRun) {
  Rank zero = rank(0, "zero");
  Rank one = rank(1, "one");
  EXPECT_EQ(zero.environment.get(kTold), "zero");
  EXPECT_EQ(zero.environment.get(kNote), std::nullopt);
  EXPECT_EQ(one.environment.get(kTold), std::nullopt) << "not that of an enclosing run";
  tell(zero, one);
  ASSERT_TRUE(hand_over(one, 1));
  one.part.end();
  store::RunRecord run;
  const Part whole = zero.part.merge(part_of(0), {60s, 60s, 60s}, {}, run);
  EXPECT_THAT(inputs(whole), ElementsAre("/p/in-0", "/p/in-1"));
  EXPECT_TRUE(whole.outputs.empty()) << "is what the recording itself left";
  EXPECT_TRUE(fs::exists(folder())) << "until the run is stored";
  zero.part.end();
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(JobPartTest, WhereRank0IsNotRecordedNothingIsLeftBehind) {
  Rank one = rank(1, "one");
  ASSERT_TRUE(store::note_joined_run(fs::path(*one.environment.get(kNote)), ""));
  PartFolder::remove({.folder = folder()});  // rank 0 has ended already
  const auto refused = hand_over(one, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().line(), "rank 0, which records the run, is itself not recorded");
  one.part.end();
  EXPECT_FALSE(fs::exists(folder()));
}

// `assay log` on one node while the job runs on another, and after it was killed there.
TEST_F(JobPartTest, OtherNodesLeaveARunAloneUntilItIsSilent) {
  auto store = store::Store::create(store::location_in(dir_.path()), {});
  ASSERT_TRUE(store) << store.error().line();
  store::RunRecord run = store::testing::run_of("train");
  run.uid = "00000000000000aa";
  run.status = store::RunStatus::kRunning;
  run.collector_pid = 0;
  run.context.host = "another-node";
  run.spool = dir_.path() / "spool";
  run.id = store::begin_run(*store, run).value();
  fs::create_directory(run.spool);
  Rank one = rank(1, "one");
  {
    Rank zero = rank(0, run.uid);
    ASSERT_TRUE(zero.part.begin_run(run.spool));
    tell(zero, one);
    EXPECT_EQ(recover_runs(*store).value(), 0);
  }
  ASSERT_TRUE(hand_over(one, 1));
  fs::last_write_time(folder() / "rank-0.state", fs::file_time_type::clock::now() - 1h);
  EXPECT_EQ(recover_runs(*store).value(), 1);
  const auto recovered = store::load_run(*store, run.id);
  ASSERT_TRUE(recovered);
  EXPECT_EQ(recovered->status, store::RunStatus::kInterrupted);
  ASSERT_EQ(recovered->inputs.size(), 1U);
  EXPECT_EQ(recovered->inputs[0].path, "/p/in-1");
  EXPECT_FALSE(fs::exists(folder()));
}

}  // namespace
}  // namespace assay::lineage
