#include "store/steps.h"

#include "store/job_reader.h"
#include "store/job_writer.h"
#include "store/testing/jobs.h"
#include "store/testing/jobs_fixture.h"

namespace assay::store {
namespace {

using ::testing::HasSubstr;
using testing::job_of;
using testing::line_of;
using testing::record;

class StepsTest : public testing::JobsTest {
 protected:
  // "1:4 2:2": number and current job of every step.
  std::string steps() {
    std::string text;
    const auto jobs = *live_jobs(store_);
    for (const Job& job : jobs) {
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", job.step, job.id);
    }
    return text;
  }
};

TEST_F(StepsTest, ARepeatedStepTakesItsPredecessorsNumber) {
  record(store_, "prepare raw=1 -> a=1 b=1");
  record(store_, "train a=1 -> model=1");
  record(store_, "prepare-again raw=2 -> b=2 a=2");  // the same files, in any order, by any command
  EXPECT_EQ(steps(), "1:3 2:2");
  EXPECT_EQ(head_of(store_, 1)->step, 1);
  EXPECT_TRUE(head_of(store_, 1)->superseded);
}

TEST_F(StepsTest, OtherFilesOrAnotherDirectoryMakeAnotherStep) {
  record(store_, "x in=1 -> a=1");
  record(store_, "y in=1 -> a=1 b=1");
  record(store_, "z other=1 -> a=1");
  record(store_, "x /project/in=1 -> /project/a=1", "/elsewhere");
  EXPECT_EQ(steps(), "1:1 2:2 3:3 4:4");
}

TEST_F(StepsTest, TheSameCommandIsTheSameStepWhateverItDoes) {
  record(store_, "make in=1 -> a=1 b=1");
  record(store_, "make");
  EXPECT_EQ(steps(), "1:2");
}

TEST_F(StepsTest, ANameIsAStepsName) {
  Job first = job_of("x -> a=1"), second = job_of("y in=1 -> b=1");
  first.name = second.name = "train";
  ASSERT_TRUE(record_job(store_, first));
  ASSERT_TRUE(record_job(store_, second));
  EXPECT_EQ(steps(), "1:2");
}

TEST_F(StepsTest, AStepThatIsAskedForIsRepeatedWhateverHappens) {
  record(store_, "x -> a=1");
  record(store_, "x2 -> b=1");
  Job again = job_of("x2 --k 3 in=1 -> other=1");
  again.repeats = 1;
  ASSERT_TRUE(record_job(store_, again));
  EXPECT_EQ(steps(), "1:3 2:2");
}

TEST_F(StepsTest, ChangesInPlaceAreStepsOfTheirOwn) {
  record(store_, "seq -> log=1");
  record(store_, "echo -> ~log<1=2");
  record(store_, "sed log=2 -> ~log=3");
  record(store_, "tr log=3 -> ~log=4");
  EXPECT_EQ(steps(), "1:1 2:2 3:3 4:4");
  record(store_, "echo -> ~log<4=5");  // the same command again
  EXPECT_EQ(steps(), "1:1 2:5 3:3 4:4");
  record(store_, "seq2 -> log=6");  // made anew, as the first
  EXPECT_EQ(steps(), "1:6 2:5 3:3 4:4");
}

Job with_streams(Job job, std::vector<std::string> redirects) {
  job.redirects = std::move(redirects);
  return job;
}

TEST_F(StepsTest, WhereALogGoesIsNoPartOfAStep) {
  for (const char* description : {"a in=1 -> x=1 log=1", "b in=1 -> y=1 ~log=2", "c -> ~log=3"}) {
    ASSERT_TRUE(record_job(store_, with_streams(job_of(description), {"1>/project/log"})));
  }
  EXPECT_EQ(steps(), "1:1 2:2 3:3");
  // The same with another log, by another command.
  ASSERT_TRUE(
      record_job(store_, with_streams(job_of("a2 in=1 -> x=2 log2=1"), {"2>>/project/log2"})));
  EXPECT_EQ(steps(), "1:4 2:2 3:3");
}

TEST_F(StepsTest, StandardInputIsPartOfACommand) {
  for (const std::string name : {"a", "b", "a"}) {
    ASSERT_TRUE(record_job(store_, with_streams(job_of(fmt::format("sort {0}=1 -> {0}.s=1", name)),
                                                {"0</project/" + name, "1>/project/x"})));
  }
  EXPECT_EQ(steps(), "1:3 2:2");
}

TEST_F(StepsTest, WithoutFilesTheCommandIsTheStep) {
  record(store_, "check a=1");
  record(store_, "check a=2");
  record(store_, "check --all a=2");
  EXPECT_EQ(steps(), "1:2 2:3");
}

TEST_F(StepsTest, DeletedFilesAreNoPartOfIt) {
  record(store_, "x -> a=1 -old");
  record(store_, "x -> ~a=2");
  EXPECT_EQ(steps(), "1:2");
}

TEST_F(StepsTest, OnlySuccessMakesAStep) {
  for (const JobStatus status : {JobStatus::kFailed, JobStatus::kInterrupted}) {
    Job job = job_of("x -> a=1");
    job.status = status;
    ASSERT_TRUE(record_job(store_, job));
  }
  EXPECT_EQ(steps(), "");
}

TEST_F(StepsTest, ANumberNamesItsCurrentJob) {
  EXPECT_THAT(line_of(step_job(store_, 1)), HasSubstr("no job has succeeded yet"));
  record(store_, "x --k 1 -> a=1");
  record(store_, "x --k 2 -> a=2");
  const auto job = step_job(store_, 1);
  ASSERT_TRUE(job) << line_of(job);
  EXPECT_THAT(job->command, ::testing::ElementsAre("x", "--k", "2"));
  EXPECT_EQ(job->outputs.size(), 1U);
  EXPECT_THAT(line_of(step_job(store_, 2)), HasSubstr("@2: there is no such step"));
}

TEST_F(StepsTest, LeavingGivesTheStepBack) {
  record(store_, "x -> a=1");
  record(store_, "x -> a=2");
  ASSERT_TRUE(leave_step(store_.database(), 2));
  EXPECT_EQ(steps(), "1:1");
  ASSERT_TRUE(leave_step(store_.database(), 1));
  EXPECT_EQ(steps(), "");
}

}  // namespace
}  // namespace assay::store
