// A run comes back from the store as it went in.
#include <unistd.h>

#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/stages.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

using testing::digest_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::line_of;
using testing::record;
using testing::run_of;

class RunTest : public testing::RunsTest {
 protected:
  std::vector<RunId> listed(const RunFilter& filter = {}) {
    return ids(*list_runs(store_, filter));
  }
  std::string sql(const std::string& query) { return *store_.database().text(query); }
};

// Everything different from its default, and bytes that are neither text nor JSON.
RunRecord full_run() {
  RunRecord run =
      run_of("train --lr 0.1 in.bin=a old.bin=b -> model.bin=m ~log=l2 -gone tmp>kept=k");
  run.uid = "0123456789abcdef";
  run.command.push_back("\xff\xfe \n'quoted'");
  run.command.push_back("");
  run.redirects = {"0</in", "1>>/out with spaces"};
  run.name = "baseline";
  run.build = true;
  run.status = RunStatus::kFailed;
  run.exit_code = 137;
  run.signal = 9;
  run.tracer = "ptrace";
  run.complete = false;
  run.dropped = 3;
  run.collector_pid = 4242;
  run.collector_start_ticks = 99;
  run.spool = "/project/.assay/spool/x";
  run.inputs.push_back({"/project/unreadable\xff", std::nullopt, 77});
  run.outputs.push_back({"/project/z-link", digest_of("m"), 1, OutputStatus::kLinked,
                         "/project/model.bin", digest_of("what it was")});
  run.processes = {{10, 1, {"train", "--lr"}, "/usr/bin/train", 5, 6, 256},
                   {11, 10, {}, "", 7, std::nullopt, std::nullopt}};
  // In the order in which they are read: by kind and path.
  run.facts = {{PathFact::Kind::kAbsent, "/project/conf\xff"},
               {PathFact::Kind::kFollowedLink, "/project/current", "v1"},
               {.kind = PathFact::Kind::kListed, .path = "/project/data", .names = {"a", "b/"}},
               {PathFact::Kind::kMadeFolder, "/project/out"},
               {PathFact::Kind::kMadeLink, "/project/latest", "/project/out"}};
  run.missed = {{"io_uring", "process 11 used io_uring"}, {"dropped", "3 events"}};
  run.gpu = {{{"kernels", 12, 0}, {"copies_to_device", 3, 4096}},
             {{"GPU-a0", 1 << 20}},
             {{"00000000000000ff", 8, "all-reduce", "bf16", 4, 1600}},
             {{"", 1 << 30, std::nullopt, "normal", false, 0, 0},
              {"GPU-a0", std::nullopt, 300, "high", true, 5, 6}}};
  run.rules = {{"project", true, "it is inside the project", 2, {"/project/a\xff", "/project/b"}},
               {"system", false, "it belongs to the system", 500'000, {}}};
  run.context.git = Git{"/project", "abc",
                        "main",     "https://example.org/x.git",
                        true,       "diff --git a b\n" + std::string(100'000, 'x'),
                        {"big.bin"}};
  run.context.environment = {{"A", "1"}, {"EMPTY", ""}, {"LINES", "a\nb=c"}};
  run.context.machine = {{"cpu", "x"}, {"gpus", {1, 2}}};
  run.context.packages = {{"dpkg", "libc6", "2.36"}, {"pip", "torch", "2.9"}};
  run.usage = {1.5, 0.5, 1 << 20, 11, 12};
  return run;
}

void expect_same(const RunRecord& read, const RunRecord& written) {
  EXPECT_EQ(read.uid, written.uid);
  EXPECT_EQ(read.command, written.command);
  EXPECT_EQ(read.redirects, written.redirects);
  EXPECT_EQ(read.directory, written.directory);
  EXPECT_EQ(read.name, written.name);
  EXPECT_EQ(read.build, written.build);
  EXPECT_EQ(read.status, written.status);
  EXPECT_EQ(read.exit_code, written.exit_code);
  EXPECT_EQ(read.signal, written.signal);
  EXPECT_EQ(read.tracer, written.tracer);
  EXPECT_EQ(read.complete, written.complete);
  EXPECT_EQ(read.dropped, written.dropped);
  EXPECT_EQ(read.started_unix_ns, written.started_unix_ns);
  EXPECT_EQ(read.duration_s, written.duration_s);
  EXPECT_EQ(read.collector_pid, written.collector_pid);
  EXPECT_EQ(read.collector_start_ticks, written.collector_start_ticks);
  EXPECT_EQ(read.spool, written.spool);
  EXPECT_EQ(read.context.user, written.context.user);
  EXPECT_EQ(read.context.host, written.context.host);
  EXPECT_EQ(read.context.environment, written.context.environment);
  EXPECT_EQ(read.context.machine, written.context.machine);
  EXPECT_EQ(read.usage.user_s, written.usage.user_s);
  EXPECT_EQ(read.usage.system_s, written.usage.system_s);
  EXPECT_EQ(read.usage.max_rss_bytes, written.usage.max_rss_bytes);
  EXPECT_EQ(read.usage.read_bytes, written.usage.read_bytes);
  EXPECT_EQ(read.usage.written_bytes, written.usage.written_bytes);
}

void expect_same_lists(const RunRecord& read, RunRecord written) {
  const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
  std::sort(written.inputs.begin(), written.inputs.end(), by_path);
  std::sort(written.outputs.begin(), written.outputs.end(), by_path);
  ASSERT_EQ(read.inputs.size(), written.inputs.size());
  for (std::size_t i = 0; i < read.inputs.size(); ++i) {
    EXPECT_EQ(read.inputs[i].path, written.inputs[i].path);
    EXPECT_EQ(read.inputs[i].blake3, written.inputs[i].blake3);
    EXPECT_EQ(read.inputs[i].size, written.inputs[i].size);
  }
  ASSERT_EQ(read.outputs.size(), written.outputs.size());
  for (std::size_t i = 0; i < read.outputs.size(); ++i) {
    EXPECT_EQ(read.outputs[i].path, written.outputs[i].path);
    EXPECT_EQ(read.outputs[i].blake3, written.outputs[i].blake3);
    EXPECT_EQ(read.outputs[i].size, written.outputs[i].size);
    EXPECT_EQ(read.outputs[i].status, written.outputs[i].status);
    EXPECT_EQ(read.outputs[i].from, written.outputs[i].from);
    EXPECT_EQ(read.outputs[i].before, written.outputs[i].before);
  }
  EXPECT_EQ(read.facts, written.facts);
  ASSERT_EQ(read.processes.size(), written.processes.size());
  for (std::size_t i = 0; i < read.processes.size(); ++i) {
    EXPECT_EQ(read.processes[i].pid, written.processes[i].pid);
    EXPECT_EQ(read.processes[i].parent, written.processes[i].parent);
    EXPECT_EQ(read.processes[i].arguments, written.processes[i].arguments);
    EXPECT_EQ(read.processes[i].program, written.processes[i].program);
    EXPECT_EQ(read.processes[i].started_ns, written.processes[i].started_ns);
    EXPECT_EQ(read.processes[i].ended_ns, written.processes[i].ended_ns);
    EXPECT_EQ(read.processes[i].wait_status, written.processes[i].wait_status);
  }
  ASSERT_EQ(read.missed.size(), written.missed.size());
  for (std::size_t i = 0; i < read.missed.size(); ++i) {
    EXPECT_EQ(read.missed[i].what, written.missed[i].what);
    EXPECT_EQ(read.missed[i].text, written.missed[i].text);
  }
  EXPECT_TRUE(read.gpu == written.gpu);
  ASSERT_EQ(read.rules.size(), written.rules.size());
  for (std::size_t i = 0; i < read.rules.size(); ++i) {
    EXPECT_EQ(read.rules[i].name, written.rules[i].name);
    EXPECT_EQ(read.rules[i].keep, written.rules[i].keep);
    EXPECT_EQ(read.rules[i].sentence, written.rules[i].sentence);
    EXPECT_EQ(read.rules[i].files, written.rules[i].files);
    EXPECT_EQ(read.rules[i].paths, written.rules[i].paths);
  }
  ASSERT_EQ(read.context.packages.size(), written.context.packages.size());
  for (std::size_t i = 0; i < read.context.packages.size(); ++i) {
    EXPECT_EQ(read.context.packages[i].manager, written.context.packages[i].manager);
    EXPECT_EQ(read.context.packages[i].name, written.context.packages[i].name);
    EXPECT_EQ(read.context.packages[i].version, written.context.packages[i].version);
  }
}

TEST_F(RunTest, ComesBackWhole) {
  const RunRecord written = full_run();
  const auto id = record_run(store_, written);
  ASSERT_TRUE(id) << line_of(id);
  const auto read = load_run(store_, *id);
  ASSERT_TRUE(read) << line_of(read);
  expect_same(*read, written);
  expect_same_lists(*read, written);
  ASSERT_TRUE(read->context.git);
  EXPECT_EQ(read->context.git->root, written.context.git->root);
  EXPECT_EQ(read->context.git->commit, written.context.git->commit);
  EXPECT_EQ(read->context.git->branch, written.context.git->branch);
  EXPECT_EQ(read->context.git->remote, written.context.git->remote);
  EXPECT_EQ(read->context.git->dirty, written.context.git->dirty);
  EXPECT_EQ(read->context.git->diff, written.context.git->diff);
  EXPECT_EQ(read->context.git->left_out, written.context.git->left_out);
  EXPECT_EQ(read->input_count, 3);
  EXPECT_EQ(read->output_count, 5);
  EXPECT_EQ(read->process_count, 2);
  EXPECT_EQ(read->stage, 0);
}

TEST_F(RunTest, IsSeenRunningWithItsContextBeforeItEnds) {
  RunRecord run = full_run();
  run.status = RunStatus::kRunning;
  run.exit_code.reset();
  const RunId id = *begin_run(store_, run);
  Store other = *Store::open(store_.location(), {});
  const RunRecord read = *load_run(other, id);
  expect_same(read, run);
  EXPECT_EQ(read.context.git->diff, run.context.git->diff);
  EXPECT_TRUE(read.inputs.empty());
}

TEST_F(RunTest, WithoutFinishNothingIsKept) {
  RunRecord run = run_of("x a=1 -> b=2");
  run.id = *begin_run(store_, run);
  {
    RunWriter writer = *RunWriter::begin(store_, run.id);
    ASSERT_TRUE(writer.add_output(run.outputs[0]));
  }
  EXPECT_TRUE(load_run(store_, run.id)->outputs.empty());
  // And it can be tried again, even after a success: the lists are those of the last recording.
  for (int i = 0; i < 2; ++i) {
    RunWriter writer = *RunWriter::begin(store_, run.id);
    ASSERT_TRUE(writer.add_output(run.outputs[0]));
    EXPECT_EQ(*writer.finish(run), 1);
  }
  EXPECT_EQ(load_run(store_, run.id)->outputs.size(), 1U);
}

TEST_F(RunTest, OfOnePathTheFirstCounts) {
  RunRecord run = run_of("x a=1 a=2 -> b=3 ~b=4");
  const RunRecord read = *load_run(store_, *record_run(store_, run));
  ASSERT_EQ(read.inputs.size(), 1U);
  EXPECT_EQ(read.inputs[0].blake3, digest_of("1"));
  ASSERT_EQ(read.outputs.size(), 1U);
  EXPECT_EQ(read.outputs[0].blake3, digest_of("3"));
  EXPECT_EQ(read.output_count, 1);
}

TEST_F(RunTest, WhatIsSharedIsStoredOnce) {
  for (int i = 0; i < 3; ++i) {
    RunRecord run = full_run();
    run.uid.clear();
    ASSERT_TRUE(record_run(store_, run));
  }
  EXPECT_EQ(sql("SELECT count(*) FROM document"), "5");  // diff, environment, machine, paths, names
  EXPECT_EQ(sql("SELECT count(*) FROM package"), "2");
  EXPECT_EQ(sql("SELECT count(DISTINCT uid) FROM run"), "3");
  EXPECT_EQ(sql("SELECT sum(length(zlib)) < 2000 FROM document"), "1");
}

TEST_F(RunTest, ListsAreNewestFirst) {
  record(store_, "a -> x=1");
  record(store_, "b -> y=1");
  record(store_, "a -> x=2");
  EXPECT_THAT(listed(), ElementsAre(3, 2, 1));
  EXPECT_THAT(listed({.limit = 2}), ElementsAre(3, 2));
  EXPECT_THAT(listed({.superseded = false}), ElementsAre(3, 2));
  EXPECT_THAT(listed({.status = RunStatus::kFailed}), ElementsAre());
  EXPECT_TRUE(head_of(store_, 1)->superseded);
  EXPECT_FALSE(head_of(store_, 3)->superseded);
}

TEST_F(RunTest, IsFoundByWhateverNamesIt) {
  RunRecord run = run_of("a -> x=1");
  run.uid = "abcd000000000001";
  run.name = "prepare";
  ASSERT_TRUE(record_run(store_, run));
  run.uid = "abcd000000000002";
  ASSERT_TRUE(record_run(store_, run));
  record(store_, "b -> y=1");
  const auto found = [&](std::string_view text) { return find_run(store_, text)->value_or(0); };
  EXPECT_EQ(found("last"), 3);
  EXPECT_EQ(found("1"), 1);
  EXPECT_EQ(found("prepare"), 2);
  EXPECT_EQ(found("@1"), 2);
  EXPECT_EQ(found("@2"), 3);
  EXPECT_EQ(found("ABCD000000000001"), 1);
  for (const char* none :
       {"", "4", "@3", "@", "@x", "-1", "nothing", "abc", "abce", "99999999999999999999"}) {
    EXPECT_EQ(found(none), 0) << none;
  }
  EXPECT_EQ(line_of(find_run(store_, "abcd")),
            "'abcd': several runs start with this; give more digits:"
            " abcd000000000002 (run 2), abcd000000000001 (run 1)");
  EXPECT_THAT(line_of(load_run(store_, 9)), HasSubstr("run 9: there is no such run"));
}

TEST_F(RunTest, ARunningRunIsStaleWhenItsCollectorIsNotTheOneThatBeganIt) {
  const std::int64_t ticks = testing::own_start_ticks();
  RunRecord run = run_of("x");
  run.status = RunStatus::kRunning;
  run.collector_pid = ::getpid();
  run.collector_start_ticks = ticks;
  ASSERT_TRUE(begin_run(store_, run));
  EXPECT_TRUE(stale_running_runs(store_)->empty());
  run.collector_start_ticks = ticks - 1;  // the pid was used again
  ASSERT_TRUE(begin_run(store_, run));
  run.collector_pid = 0;
  ASSERT_TRUE(begin_run(store_, run));
  const auto stale = *stale_running_runs(store_);
  ASSERT_EQ(stale.size(), 2U);
  EXPECT_EQ(stale[0].id, 3);
  EXPECT_EQ(stale[1].id, 2);
}

}  // namespace
}  // namespace assay::store
