// Which files of a run's standard output and error are outputs, and which are logs.
#include "store/streams.h"

#include "store/artifacts.h"
#include "store/cleaning.h"
#include "store/migrations.h"
#include "store/run_dependencies.h"
#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

using ::testing::ElementsAre;
using testing::run_of;

class StreamsTest : public testing::RunsTest {
 protected:
  RunId add(std::string_view description, std::vector<std::string> redirects) {
    RunRecord run = run_of(description);
    run.redirects = std::move(redirects);
    return *record_run(store_, run);
  }
  static std::string names(const std::vector<Output>& files) {
    std::string text;
    for (const Output& file : files) text += (text.empty() ? "" : " ") + file.path.substr(9);
    return text;
  }
  // "a b | log": outputs and logs.
  std::string files(RunId id) {
    const RunRecord run = *load_run(store_, id);
    EXPECT_EQ(run.output_count, static_cast<std::int64_t>(run.outputs.size()));
    return names(run.outputs) + " | " + names(run.streams);
  }
  // Of one run that is the first to be recorded in its folder.
  std::string of_one(std::string_view description, std::vector<std::string> redirects) {
    const RunId run = add(description, std::move(redirects));
    std::string text = files(run);
    EXPECT_TRUE(remove_run(store_, run));
    return text;
  }
};

TEST_F(StreamsTest, AnOnlyResultIsAnOutputAndALogBesideFilesIsNot) {
  for (const std::string sign : {"1>", "1>>", "2>", "1>&"}) {
    const std::vector<std::string> redirects = {sign + "/project/out"};
    EXPECT_EQ(of_one("sort in=1 -> out=2", redirects), "out | ") << sign;
    EXPECT_EQ(of_one("sort in=1 -> out=2 -gone", redirects), "gone out | ") << sign;
    EXPECT_EQ(of_one("train in=1 -> model=3 out=2", redirects), "model | out") << sign;
  }
  // The file of another name is not the stream's.
  EXPECT_EQ(of_one("train in=1 -> out2=3 out=2", {"1>/project/out"}), "out2 | out");
}

TEST_F(StreamsTest, StandardErrorIsALogBesideStandardOutput) {
  EXPECT_EQ(of_one("sort in=1 -> a.err=3 out=2", {"1>/project/out", "2>/project/a.err"}),
            "out | a.err");
  EXPECT_EQ(of_one("sort in=1 -> both=3", {"1>/project/both", "2>/project/both"}), "both | ");
}

TEST_F(StreamsTest, TheLogOfAJobIsAnOutputOnlyOfTheFirstThatWroteToIt) {
  EXPECT_EQ(of_one("test -> ~job.log<1=2", {"1>>&/project/job.log"}), " | job.log");
  EXPECT_EQ(of_one("bench -> ~all<1=2", {"1>&/project/all"}), "all | ");
  EXPECT_EQ(of_one("append -> ~out<1=2", {"1>>/project/out"}), "out | ");
  const RunId first = add("echo -> job.log=1", {"1>&/project/job.log"});
  const RunId second = add("test -> ~job.log<1=2", {"1>>&/project/job.log"});
  EXPECT_EQ(files(first), "job.log | ");
  EXPECT_EQ(files(second), " | job.log");
}

TEST_F(StreamsTest, WhatChangesAnOutputIsOne) {
  add("seq -> list=1", {"1>/project/list"});
  EXPECT_EQ(files(add("more -> x=1 ~list<1=2", {"1>>/project/list"})), "list x | ");
  EXPECT_EQ(files(add("other -> x=1 ~list<7=8", {"1>>/project/list"})), "x | list");
}

TEST_F(StreamsTest, ALogThatARunReadsIsAnOutputFromThenOn) {
  const RunId first = add("train in=1 -> model=1 ~log<0=1", {"1>>/project/log"});
  const RunId second = add("train in=2 -> model=2 ~log<1=2", {"1>>/project/log"});
  const RunId other = add("train in=2 -> model=2 ~log<1=3", {"1>>/project/log"});
  EXPECT_EQ(files(add("grep log=9 -> losses=1", {})), "losses | ");
  EXPECT_EQ(files(second), "model | log") << "nobody has left what was read";
  testing::record(store_, "grep log=2 -> losses=2");
  EXPECT_EQ(files(second), "log model | ");
  EXPECT_EQ(files(first), "log model | ") << "it added to that";
  EXPECT_EQ(files(other), "model | log");
  EXPECT_EQ(files(add("train in=3 -> model=3 log=4", {"1>/project/log"})), "log model | ");
}

TEST_F(StreamsTest, ALogThatTheRunItselfReadsIsAnOutput) {
  EXPECT_EQ(of_one("tally log=1 -> x=1 ~log=2", {"1>>/project/log"}), "log x | ");
}

TEST_F(StreamsTest, AskedAboutALogSaysWhereItCameFrom) {
  add("a -> x=1 log=1", {"1>/project/log"});
  const RunId second = add("b -> y=1 ~log<1=2", {"1>>/project/log"});
  const RunRecord run = *load_run(store_, second);
  EXPECT_TRUE(dependencies_of(run).empty());
  ASSERT_EQ(dependencies_for(run, "/project/log").size(), 1U);
  EXPECT_EQ(load_dependencies(store_, second, "/project/log")->size(), 1U);
  EXPECT_TRUE(load_dependencies(store_, second, "")->empty());
  EXPECT_EQ(latest_at(store_, "/project/log")->value().run, second);
  EXPECT_THAT(ids({*head_of(store_, files_below(store_, "/project")->front().run)}),
              ElementsAre(1));
}

// What the migration makes of runs that were recorded before there were streams.
TEST_F(StreamsTest, LogsOfEarlierProgramsAreFound) {
  add("train in=1 -> model=1 log=1", {"1>/project/log", "2>/project/log"});
  add("train2 in=1 -> log2=1 ~read<0=1", {"1>>/project/read"});
  add("sort in=1 -> only=1", {"1>/project/only"});
  testing::record(store_, "wc read=1 -> n=1");
  ASSERT_TRUE(
      store_.database().exec("UPDATE run_output SET stream = 0;"
                             "UPDATE run SET outputs = 2 WHERE id = 1"));
  const std::string_view sql = embedded_migrations()[12].sql;
  ASSERT_TRUE(store_.database().exec(sql.substr(sql.find("UPDATE"))));
  EXPECT_EQ(files(1), "model | log");
  EXPECT_EQ(files(2), "log2 read | ");
  EXPECT_EQ(files(3), "only | ");
}

}  // namespace
}  // namespace assay::store
