// Graphs by content: typical projects, and random ones against brute force.
#include "lineage/graph/dag_query.h"

#include <rapidcheck/gtest.h>

#include <set>

#include "base/testing/temp_dir.h"
#include "lineage/graph/dag_text.h"
#include "lineage/testing/random_runs.h"
#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/testing/runs.h"

namespace assay::lineage {
namespace {

using store::RunId;
using store::testing::digest_of;
using store::testing::record;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::set<RunId> ids(const Dag& dag) {
  std::set<RunId> found;
  for (const DagRun& run : dag.runs) found.insert(run.run.id);
  return found;
}

class DagTest : public ::testing::Test {
 protected:
  DagTest() : store_(*store::Store::create(store::location_in(directory_.path()), {})) {}

  Artifact artifact(const std::string& name) {
    const auto found = resolve_artifact(store_, name, "/project");
    EXPECT_TRUE(found) << found.error().line();
    return found.value_or(Artifact{});
  }
  std::set<RunId> up(const std::string& name, std::int64_t depth = -1) {
    return ids(*dag_around(store_, artifact(name), {.down = false, .depth = depth}));
  }
  std::set<RunId> down(const std::string& name, std::int64_t depth = -1) {
    return ids(*dag_around(store_, artifact(name), {.up = false, .depth = depth}));
  }

  base::testing::MemoryDir directory_;  // each store waits for the disk
  store::Store store_;
};

TEST_F(DagTest, Linear) {
  record(store_, "a raw=0 -> x=1");
  record(store_, "b x=1 -> y=2");
  record(store_, "c y=2 -> z=3");
  EXPECT_THAT(up("z"), ElementsAre(1, 2, 3));
  EXPECT_THAT(up("y"), ElementsAre(1, 2));
  EXPECT_THAT(up("z", 1), ElementsAre(2, 3));  // depth: who made it, and who made what that read
  EXPECT_THAT(up("raw"), IsEmpty());
  EXPECT_THAT(down("x"), ElementsAre(1, 2, 3));
  EXPECT_THAT(down("raw"), ElementsAre(1, 2, 3));
  EXPECT_THAT(down("raw", 1), ElementsAre(1));
  EXPECT_THAT(down("z"), ElementsAre(3));
}

TEST_F(DagTest, Diamond) {
  record(store_, "split raw=0 -> l=1 r=2");
  record(store_, "left l=1 -> l2=3");
  record(store_, "right r=2 -> r2=4");
  record(store_, "join l2=3 r2=4 -> out=5");
  EXPECT_THAT(up("out"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(up("l2"), ElementsAre(1, 2));
  EXPECT_THAT(down("l"), ElementsAre(1, 2, 4));
}

TEST_F(DagTest, EnsembleAndFanIn) {
  record(store_, "prepare -> data=0");
  for (int i = 1; i <= 5; ++i) record(store_, fmt::format("train data=0 -> m{}=m{}", i, i));
  record(store_, "vote m1=m1 m2=m2 m3=m3 m4=m4 m5=m5 -> answer=7");
  EXPECT_EQ(up("answer").size(), 7U);
  EXPECT_EQ(down("data").size(), 7U);
  EXPECT_THAT(up("m3"), ElementsAre(1, 4));
  EXPECT_THAT(down("m3"), ElementsAre(4, 7));
}

TEST_F(DagTest, AReRunIsAnotherOrigin) {
  record(store_, "make -> a=1");
  record(store_, "use a=1 -> b=2");
  record(store_, "make -> a=3");
  record(store_, "use2 a=3 -> c=4");
  EXPECT_THAT(up("b"), ElementsAre(1, 2));
  EXPECT_THAT(up("c"), ElementsAre(3, 4));
  EXPECT_THAT(down("a"), ElementsAre(3, 4));  // the path means what it holds now
  EXPECT_THAT(down(digest_of("1").hex()), ElementsAre(1, 2));
}

TEST_F(DagTest, RenameChains) {
  record(store_, "make -> a=1");
  record(store_, "mv a=1 -> a>b=1");
  record(store_, "mv b=1 -> b>c=1");
  record(store_, "use c=1 -> d=2");
  EXPECT_THAT(up("d"), ElementsAre(1, 2, 3, 4));
  // Moved by hand in between, unrecorded: so it is from outside, with a remark.
  record(store_, "use elsewhere=1 -> e=3");
  const Dag dag = *dag_around(store_, artifact("e"), {.down = false});
  EXPECT_THAT(ids(dag), ElementsAre(5));
  ASSERT_EQ(dag.files.size(), 2U);
  EXPECT_EQ(dag.files[1].path, "/project/elsewhere");
  EXPECT_EQ(dag.files[1].same_content, (SameContent{3, "/project/c"}));
}

TEST_F(DagTest, ContentsThatAreAlikeByChanceAreNotConnected) {
  record(store_, "cat 1=x -> out1=x");
  EXPECT_THAT(up("./1"), IsEmpty());
  record(store_, "cat a=1 -> b=1");
  record(store_, "cat2 b=1 -> c=1");
  record(store_, "cat a=1 -> b=1");
  EXPECT_THAT(ids(*dag_around(store_, RunId{4}, {.down = false})), ElementsAre(4));
  const Dag live = live_dag(*load_live_stages(store_));
  for (const DagRun& run : live.runs) {
    if (run.run.id != 4) continue;
    ASSERT_EQ(run.inputs.size(), 1U);
    EXPECT_EQ(live.files[run.inputs[0].file].path, "/project/a");
    EXPECT_FALSE(live.files[run.inputs[0].file].producer);
  }
}

TEST_F(DagTest, WhatWasMadeTwiceWentIntoTheReadersOfBoth) {
  record(store_, "seq -> a=1");
  record(store_, "tac a=1 -> b=2");
  record(store_, "seq -> a=1");
  EXPECT_THAT(down("a"), ElementsAre(1, 2, 3));
  EXPECT_THAT(down(digest_of("1").hex()), ElementsAre(1, 2, 3));
  EXPECT_THAT(up("a"), ElementsAre(3));
  EXPECT_THAT(ids(*dag_around(store_, artifact("a"), {})), ElementsAre(1, 2, 3));
  const Dag dag = *dag_around(store_, artifact("a"), {.up = false});
  EXPECT_THAT(lineage_down_text(view_of(dag, "/project")),
              AllOf(::testing::StartsWith("a  "), HasSubstr("→ tac  (run 2)"), HasSubstr("b  ")));
}

TEST_F(DagTest, ChangesInPlaceAreAChain) {
  record(store_, "make -> log=1");
  record(store_, "append log=1 -> ~log=2");
  record(store_, "append -> ~log<2=3");
  record(store_, "wc log=3 -> n=4");
  EXPECT_THAT(up("n"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(up(digest_of("2").hex()), ElementsAre(1, 2));
  EXPECT_THAT(down(digest_of("1").hex()), ElementsAre(1, 2, 3, 4));
}

TEST_F(DagTest, ContentsThatGoInACircleEnd) {
  record(store_, "pack a=1 -> b=2");
  record(store_, "unpack b=2 -> a=1");
  record(store_, "pack a=1 -> b=2");
  record(store_, "unpack b=2 -> a=1");
  EXPECT_THAT(up("a"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(down("b"), ElementsAre(1, 2, 3, 4));  // it was made twice
}

TEST_F(DagTest, RunsThatRanAtTheSameTimeAndFedEachOtherEnd) {
  store::RunRecord ping = store::testing::run_of("ping b=2 -> a=1");
  store::RunRecord pong = store::testing::run_of("pong a=1 -> b=2");
  ping.duration_s = pong.duration_s = 3600;
  ASSERT_TRUE(store::record_run(store_, ping));
  ASSERT_TRUE(store::record_run(store_, pong));
  EXPECT_THAT(up("a"), ElementsAre(1, 2));
  EXPECT_THAT(down("a"), ElementsAre(1, 2));
  EXPECT_EQ(whole_dag(store_)->files.size(), 2U);
}

TEST_F(DagTest, NeighboursOfARunAreItsFilesAndTheirRuns) {
  record(store_, "a raw=0 -> x=1");
  record(store_, "b x=1 other=9 -> y=2 unused=3");
  record(store_, "c y=2 -> z=3");
  const Dag dag = *dag_around(store_, RunId{2}, {});
  EXPECT_THAT(ids(dag), ElementsAre(1, 2, 3));
  EXPECT_EQ(dag.files.size(), 6U);
  EXPECT_EQ(dag.runs[*dag.run].run.id, 2);
  const Dag near = *dag_around(store_, RunId{2}, {.depth = 0});
  EXPECT_EQ(near.files.size(), 4U);
}

// A graph is consistent: every edge is in both lists, and no file and no run is there twice.
void check_consistent(const Dag& dag) {
  std::set<RunId> runs;
  for (std::size_t j = 0; j < dag.runs.size(); ++j) {
    RC_ASSERT(runs.insert(dag.runs[j].run.id).second);
    for (const DagInput& input : dag.runs[j].inputs) {
      const auto& consumers = dag.files[input.file].consumers;
      RC_ASSERT(std::count(consumers.begin(), consumers.end(), j) == 1);
    }
    for (const std::size_t file : dag.runs[j].outputs) RC_ASSERT(dag.files[file].producer == j);
  }
  std::set<std::tuple<std::string, std::optional<hash::Digest>, std::optional<std::size_t>>> files;
  for (const DagFile& file : dag.files) {
    RC_ASSERT(files.insert({file.path, file.blake3, file.producer}).second);
  }
}

RC_GTEST_PROP(DagProperty, ClosuresEqualBruteForce, ()) {
  const std::vector<store::RunRecord> runs = *testing::random_runs();
  base::testing::MemoryDir directory;
  auto store = *store::Store::create(store::location_in(directory.path()), {});
  for (const store::RunRecord& run : runs) RC_ASSERT(store::record_run(store, run).has_value());

  // edge[k][j]: j read what k made, by the definition, spelled out on the vectors.
  const std::size_t n = runs.size();
  std::vector<std::vector<bool>> edge(n, std::vector<bool>(n));
  for (std::size_t j = 0; j < n; ++j) {
    std::map<std::string, std::optional<hash::Digest>> needs;
    for (const store::Output& output : runs[j].outputs) {
      if (output.before) needs[output.path] = output.before;
    }
    for (const store::Input& input : runs[j].inputs) needs[input.path] = input.blake3;
    for (const auto& [path, content] : needs) {
      std::optional<std::size_t> maker;
      for (std::size_t k = 0; k < j; ++k) {
        for (const store::Output& output : runs[k].outputs) {
          if (output.path == path && output.blake3 == content) maker = k;
        }
      }
      if (maker) edge[*maker][j] = true;
    }
  }
  auto reach = edge;  // Warshall
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (reach[i][k] && reach[k][j]) reach[i][j] = true;
      }
    }
  }
  for (std::size_t j = 0; j < n; ++j) {
    std::set<RunId> above = {static_cast<RunId>(j + 1)};
    std::set<RunId> below = above;
    for (std::size_t k = 0; k < n; ++k) {
      if (reach[k][j]) above.insert(static_cast<RunId>(k + 1));
      if (reach[j][k]) below.insert(static_cast<RunId>(k + 1));
    }
    const auto id = static_cast<RunId>(j + 1);
    const Dag up = *dag_around(store, id, {.down = false});
    const Dag down = *dag_around(store, id, {.up = false});
    check_consistent(up);
    check_consistent(down);
    // The run's own inputs are shown with their makers either way.
    std::set<RunId> direct = below;
    for (std::size_t k = 0; k < n; ++k) {
      if (edge[k][j]) direct.insert(static_cast<RunId>(k + 1));
    }
    RC_ASSERT(ids(up) == above);
    RC_ASSERT(ids(down) == direct);
  }
  const Dag whole = *whole_dag(store);
  check_consistent(whole);
  for (std::size_t j = 0; j < n; ++j) {
    std::set<std::size_t> makers;
    for (const DagInput& input : whole.runs[j].inputs) {
      if (whole.files[input.file].producer) makers.insert(*whole.files[input.file].producer);
    }
    for (std::size_t k = 0; k < n; ++k) RC_ASSERT(makers.contains(k) == edge[k][j]);
  }
}

TEST_F(DagTest, NamesResolveToRunsFilesAndContents) {
  record(store_, "make raw=0 -> data/x=1");
  const auto kind = [&](const std::string& text) -> std::string {
    const auto named = resolve_name(store_, text, "/project/data");
    if (!named) return named.error().line();
    if (const RunId* id = std::get_if<RunId>(&*named)) return fmt::format("run {}", *id);
    return std::get<Artifact>(*named).path;
  };
  EXPECT_EQ(kind("last"), "run 1");
  EXPECT_EQ(kind("1"), "run 1");
  EXPECT_EQ(kind("@1"), "run 1");
  EXPECT_EQ(kind("x"), "/project/data/x");
  EXPECT_EQ(kind("../raw"), "/project/raw");
  EXPECT_EQ(kind("/project/./data//x"), "/project/data/x");
  EXPECT_EQ(kind(digest_of("1").hex().substr(0, 4)), "/project/data/x");
  // Fewer digits match by accident.
  const std::string digits = digest_of("1").hex().substr(0, 3);
  EXPECT_EQ(kind(digits), "'" + digits +
                              "': neither a run nor a file that a run has read or written; see "
                              "`assay log`");
  EXPECT_EQ(kind("nowhere"),
            "'nowhere': neither a run nor a file that a run has read or written; see `assay log`");
  EXPECT_EQ(kind(""),
            "'': neither a run nor a file that a run has read or written; see `assay log`");
}

TEST_F(DagTest, AnAmbiguousPrefixListsUpToFiveCandidates) {
  // Contents whose digests start alike, found by trying.
  std::map<std::string, std::vector<std::string>> by_prefix;
  std::string found;
  for (int i = 0; found.empty(); ++i) {
    auto& alike = by_prefix[digest_of(std::to_string(i)).hex().substr(0, 4)];
    alike.push_back(std::to_string(i));
    if (alike.size() == 7) found = digest_of(alike[0]).hex().substr(0, 4);
  }
  std::string description = "make ->";
  for (const std::string& content : by_prefix[found]) {
    description += fmt::format(" f{}={}", content, content);
  }
  record(store_, description);
  const auto named = resolve_artifact(store_, found, "/project");
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code, base::ExitCode::kUsage);
  EXPECT_THAT(named.error().line(),
              HasSubstr("several contents start with this; give more digits"));
  EXPECT_THAT(named.error().line(), HasSubstr(", …"));
  const std::string line = named.error().line();
  EXPECT_EQ(std::count(line.begin(), line.end(), '('), 5);
}

}  // namespace
}  // namespace assay::lineage
