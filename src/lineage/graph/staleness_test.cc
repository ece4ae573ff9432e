#include "lineage/graph/staleness.h"

#include <fcntl.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/testing/temp_dir.h"
#include "lineage/graph/dag.h"
#include "lineage/graph/disk_files.h"
#include "lineage/testing/random_runs.h"
#include "store/run_writer.h"
#include "store/testing/runs.h"

namespace assay::lineage {
namespace {

using store::RunRecord;
using store::testing::digest_of;
using store::testing::run_of;

// The disk as a map from path to content.
using Disk = std::map<std::string, std::string>;

DiskCheck check_of(const Disk& disk) {
  return [&disk](const std::string& path, const hash::Digest& content, std::int64_t) {
    const auto found = disk.find(path);
    if (found == disk.end()) return OnDisk::kMissing;
    return digest_of(found->second) == content ? OnDisk::kSame : OnDisk::kChanged;
  };
}

// The reasons of each stage.
std::vector<std::vector<Reason>> staleness(const LiveStages& stages, const DiskQueries& disk) {
  std::vector<std::vector<Reason>> reasons;
  for (Freshness& found : freshness(stages, disk)) reasons.push_back(std::move(found.reasons));
  return reasons;
}
std::vector<std::vector<Reason>> staleness(const LiveStages& stages, const DiskCheck& on_disk) {
  return staleness(stages, DiskQueries{.content = on_disk});
}

// Stages from descriptions: ids are given in the order of `order`, if one is given (a stage whose
// number is small may have run last).
LiveStages stages_of(const std::vector<std::string>& descriptions,
                     const std::vector<store::RunId>& order = {}) {
  std::vector<RunRecord> runs;
  for (std::size_t i = 0; i < descriptions.size(); ++i) {
    runs.push_back(run_of(descriptions[i]));
    runs.back().stage = static_cast<std::int64_t>(i + 1);
    runs.back().id = order.empty() ? runs.back().stage : order[i];
  }
  return LiveStages(std::move(runs));
}

// One line per stage: "-" or its reasons.
std::vector<std::string> states(const LiveStages& stages, const Disk& disk) {
  std::vector<std::string> lines;
  for (const auto& reasons : staleness(stages, check_of(disk))) {
    std::vector<std::string> texts;
    for (const Reason& reason : reasons) {
      texts.push_back(reason.text([](const std::string& path) { return path.substr(9); }));
    }
    lines.push_back(texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, "; ")));
  }
  return lines;
}

Disk disk_of(std::initializer_list<std::pair<const char*, const char*>> files) {
  Disk disk;
  for (const auto& [name, content] : files) disk[std::string("/project/") + name] = content;
  return disk;
}

using ::testing::ElementsAre;

// Lines that follow in the log of a job are not the stage's; what it left has to be there.
TEST(Staleness, AFileThatWasHandedDownMayGrow) {
  const auto state = [](const std::string& sign, bool begins) {
    RunRecord run = run_of("cp in=1 -> log=said");
    run.redirects = {sign + "/project/log"};
    run.id = run.stage = 1;
    std::vector<RunRecord> runs;
    runs.push_back(std::move(run));
    const LiveStages stages(std::move(runs));
    const auto on_disk = [](const std::string& path, const hash::Digest&, std::int64_t) {
      return path == "/project/log" ? OnDisk::kChanged : OnDisk::kSame;
    };
    DiskQueries disk{.content = on_disk};
    disk.begins = [&](const std::string&, const hash::Digest&, std::int64_t) { return begins; };
    return staleness(stages, disk)[0].empty();
  };
  EXPECT_TRUE(state("1>&", true));
  EXPECT_FALSE(state("1>&", false));
  EXPECT_FALSE(state("1>", true)) << "only the stage writes there";
  EXPECT_FALSE(state("1>>", true));
}

TEST(Staleness, NothingChanged) {
  EXPECT_THAT(states(stages_of({"a raw=0 -> x=1", "b x=1 -> y=2"}),
                     disk_of({{"raw", "0"}, {"x", "1"}, {"y", "2"}})),
              ElementsAre("-", "-"));
}

TEST(Staleness, AChangedInputReachesEverythingBelow) {
  EXPECT_THAT(states(stages_of({"a raw=0 -> x=1", "b x=1 -> y=2", "c other=5"}),
                     disk_of({{"raw", "9"}, {"x", "1"}, {"y", "2"}, {"other", "5"}})),
              ElementsAre("input raw has changed", "stage 1 is stale", "-"));
}

TEST(Staleness, AProducerThatMadeSomethingElse) {
  EXPECT_THAT(
      states(stages_of({"a -> x=3", "b x=1 -> y=2"}, {3, 2}), disk_of({{"x", "3"}, {"y", "2"}})),
      ElementsAre("-", "stage 1 has written x since"));
}

TEST(Staleness, AProducerThatMadeTheSameAgain) {
  EXPECT_THAT(
      states(stages_of({"a -> x=1", "b x=1 -> y=2"}, {3, 2}), disk_of({{"x", "1"}, {"y", "2"}})),
      ElementsAre("-", "-"));
}

TEST(Staleness, OutputsThatWentOrChanged) {
  EXPECT_THAT(
      states(stages_of({"a -> x=1 y=2", "b y=2 -> z=1"}), disk_of({{"y", "3"}, {"z", "1"}})),
      ElementsAre("output x is gone; output y has changed",
                  "input y has changed; stage 1 is stale"));
}

TEST(Staleness, AFileChangedInPlaceByALaterStageIsNotStale) {
  EXPECT_THAT(states(stages_of({"make -> p=1", "look p=1 -> s=1", "edit p=1 -> ~p=2", "use p=2"}),
                     disk_of({{"p", "2"}, {"s", "1"}})),
              ElementsAre("-", "-", "-", "-"));
}

TEST(Staleness, AFileChangedInPlaceAndMadeAgain) {
  EXPECT_THAT(states(stages_of({"make -> p=1", "edit p=1 -> ~p=2", "use p=2"}, {9, 2, 3}),
                     disk_of({{"p", "1"}})),
              ElementsAre("-", "stage 1 wrote p again after this stage changed it",
                          "stage 1 has written p since"));
}

TEST(Staleness, AFileThatIsAddedToIsAChain) {
  const std::vector<std::string> runs = {"seq -> log=1", "echo -> ~log<1=2", "sed log=2 -> ~log=3",
                                         "wc log=3 -> n=4"};
  EXPECT_THAT(states(stages_of(runs), disk_of({{"log", "3"}, {"n", "4"}})),
              ElementsAre("-", "-", "-", "-"));
  EXPECT_EQ(states(stages_of(runs, {9, 2, 3, 4}), disk_of({{"log", "1"}, {"n", "4"}}))[1],
            "stage 1 wrote log again after this stage changed it");
}

TEST(Staleness, EqualContentsAtOtherPathsAreNoInput) {
  EXPECT_THAT(states(stages_of({"a raw=0 -> x=1", "b copy=1 -> y=2"}),
                     disk_of({{"raw", "9"}, {"x", "1"}, {"copy", "1"}, {"y", "2"}})),
              ElementsAre("input raw has changed", "-"));
}

TEST(Staleness, AFileThatALaterStageTookAwayIsNotMissed) {
  EXPECT_THAT(states(stages_of({"make -> tmp=1", "use tmp=1 -> y=2", "clean -> -tmp"}),
                     disk_of({{"y", "2"}})),
              ElementsAre("-", "-", "-"));
  EXPECT_THAT(
      states(stages_of({"make -> tmp=1", "mv tmp=1 -> tmp>kept=1"}), disk_of({{"kept", "1"}})),
      ElementsAre("-", "-"));
}

TEST(Staleness, AnotherStageThatMakesTheSameFileCounts) {
  EXPECT_THAT(states(stages_of({"gen1 -> p=1", "use p=1", "gen2 -> p=2 q=1"}),
                     disk_of({{"p", "2"}, {"q", "1"}})),
              ElementsAre("-", "stage 3 has written p since", "-"));
}

TEST(Staleness, AFileThatAnEarlierStageMadeAgainIsOverwrittenAgain) {
  const std::vector<std::string> runs = {"cp a=1 -> p=1", "cp b=2 -> p=2", "use p=2 -> q=2"};
  const Disk disk = {{"/project/a", "1"}, {"/project/b", "2"}, {"/project/q", "2"}};
  Disk in_order = disk;
  in_order["/project/p"] = "2";
  EXPECT_THAT(states(stages_of(runs), in_order), ElementsAre("-", "-", "-"));
  Disk again = disk;
  again["/project/p"] = "1";
  EXPECT_THAT(states(stages_of(runs, {4, 2, 3}), again),
              ElementsAre("-", "stage 1 wrote p again after this stage changed it",
                          "stage 1 has written p since"));
  Disk edited = in_order;
  edited["/project/a"] = "9";
  EXPECT_THAT(states(stages_of(runs), edited),
              ElementsAre("input a has changed", "stage 1 is stale", "stage 2 is stale"));
  // The first one needs what the second makes, so it is the last.
  EXPECT_THAT(states(stages_of({"use q=1 -> p=1", "make -> p=2 q=1"}, {2, 1}),
                     disk_of({{"p", "1"}, {"q", "1"}})),
              ElementsAre("-", "-"));
}

TEST(Staleness, WhatAnotherStageReplacedIsNamed) {
  const auto replaced = [](const LiveStages& stages, const Disk& disk) {
    std::vector<std::string> lines;
    for (std::size_t stage = 0; stage < stages.runs().size(); ++stage) {
      std::string line;
      for (const Reason& one : replaced_outputs(stages, stage, {.content = check_of(disk)})) {
        line += one.text([](const std::string& path) { return path.substr(9); }) + ";";
      }
      lines.push_back(line);
    }
    return lines;
  };
  EXPECT_THAT(replaced(stages_of({"a -> p=1 q=1", "b -> p=2", "c -> p=3"}),
                       disk_of({{"p", "3"}, {"q", "1"}})),
              ElementsAre("stage 3 has replaced p;", "stage 3 has replaced p;", ""));
  EXPECT_THAT(replaced(stages_of({"a -> p=1", "b -> p=2"}, {2, 1}), disk_of({{"p", "1"}})),
              ElementsAre("", "stage 1 has replaced p;"));
  // In place, appended to, made with the same content, removed.
  EXPECT_THAT(
      replaced(stages_of({"a -> p=1", "b p=1 -> ~p=2", "c -> ~p<2=3"}), disk_of({{"p", "3"}})),
      ElementsAre("", "", ""));
  EXPECT_THAT(replaced(stages_of({"a -> p=1", "b -> p=1"}), disk_of({{"p", "1"}})),
              ElementsAre("", ""));
  EXPECT_THAT(replaced(stages_of({"a -> p=1", "b -> -p"}), disk_of({})), ElementsAre("", ""));
  // Replaced, and then changed in place.
  EXPECT_THAT(replaced(stages_of({"a -> p=1", "b -> p=2", "c p=2 -> ~p=3"}), disk_of({{"p", "3"}})),
              ElementsAre("stage 2 has replaced p;", "", ""));
}

// One reason each, not one for every stage before.
TEST(Staleness, StagesThatOverwriteOneFileFollowTheOneBeforeEach) {
  EXPECT_THAT(states(stages_of({"cp a=1 -> p=1", "cp b=1 -> p=2 q=2", "cp c=1 -> p=3",
                                "cp d=1 -> q=4 p=4", "use q=4 -> r=1"}),
                     disk_of({{"a", "9"},
                              {"b", "1"},
                              {"c", "1"},
                              {"d", "1"},
                              {"p", "4"},
                              {"q", "4"},
                              {"r", "1"}})),
              ElementsAre("input a has changed", "stage 1 is stale", "stage 2 is stale",
                          "stage 2 is stale; stage 3 is stale", "stage 4 is stale"));
}

TEST(Staleness, StagesThatFeedEachOtherEnd) {
  EXPECT_THAT(
      states(stages_of({"a y=1 -> x=1", "b x=1 -> y=1"}), disk_of({{"x", "1"}, {"y", "9"}})),
      ElementsAre("input y has changed; stage 2 is stale",
                  "output y has changed; stage 1 is stale"));
}

// The definition implemented independently, on plain lists.
std::vector<bool> brute_force(const std::vector<RunRecord>& runs, const Disk& disk) {
  const std::size_t n = runs.size();
  const auto leaves = [&](std::size_t s, const std::string& p) -> const store::Output* {
    for (const store::Output& o : runs[s].outputs) {
      if (o.path == p && o.status != store::OutputStatus::kDeleted) return &o;
    }
    return nullptr;
  };
  const auto takes_away = [&](std::size_t s, const std::string& p) {
    for (const store::Output& o : runs[s].outputs) {
      if (o.path == p && o.status == store::OutputStatus::kDeleted) return true;
      if (o.from == p && o.status == store::OutputStatus::kRenamed) return true;
    }
    return false;
  };
  const auto changes = [&](std::size_t s, const std::string& p) {
    return leaves(s, p) != nullptr || takes_away(s, p);
  };
  const auto reads = [&](std::size_t s, const std::string& p) {
    for (const store::Input& i : runs[s].inputs) {
      if (i.path == p) return true;
    }
    for (const store::Output& o : runs[s].outputs) {
      if (o.path == p && o.before) return true;
    }
    return false;
  };
  const auto last_to_change = [&](const std::string& p) {
    std::optional<std::size_t> last;
    for (std::size_t s = 0; s < n; ++s) {
      if (changes(s, p) && (!last || runs[s].id > runs[*last].id)) last = s;
    }
    return last;
  };
  const auto differs = [&](const std::string& p, const hash::Digest& d) {
    const auto found = disk.find(p);
    return found == disk.end() || digest_of(found->second) != d;
  };
  std::vector<bool> stale(n);
  std::set<std::pair<std::size_t, std::size_t>> feeds;
  for (std::size_t s = 0; s < n; ++s) {
    std::map<std::string, store::Input> needs;
    for (const store::Output& o : runs[s].outputs) {
      if (o.before) needs[o.path] = {o.path, o.before, 0};
    }
    for (const store::Input& i : runs[s].inputs) needs[i.path] = i;
    for (const auto& [path, i] : needs) {
      std::optional<std::size_t> from;
      for (std::size_t t = 0; t < n; ++t) {
        if (t == s || leaves(t, i.path) == nullptr) continue;
        const bool later = t > s;
        if (later && (changes(s, i.path) || reads(t, i.path))) continue;
        if (!from || runs[t].id > runs[*from].id) from = t;
      }
      if (from) feeds.insert({*from, s});
      const store::Output* made = from ? leaves(*from, i.path) : nullptr;
      if (made != nullptr && made->blake3 != i.blake3) stale[s] = true;
      if (from && changes(s, i.path) && runs[*from].id > runs[s].id) stale[s] = true;
      const auto last = last_to_change(i.path);
      bool made_before = false;
      for (std::size_t t = 0; t < s; ++t) {
        const store::Output* left = leaves(t, i.path);
        made_before = made_before || (left != nullptr && !left->before && !reads(t, i.path));
      }
      const bool taken_over = last && *last > s && made_before &&
                              (reads(*last, i.path) || leaves(*last, i.path) == nullptr);
      if (!changes(s, i.path) && !taken_over && differs(i.path, *i.blake3)) stale[s] = true;
    }
    for (const store::Output& o : runs[s].outputs) {
      if (o.blake3 && last_to_change(o.path) == s && differs(o.path, *o.blake3)) stale[s] = true;
    }
  }
  // Whether `s` needs something that `t` makes, or that is made from it.
  const auto depends = [&](std::size_t s, std::size_t t) {
    std::set<std::size_t> made_from = {t};
    for (std::size_t round = 0; round < n; ++round) {
      for (const auto& [from, to] : feeds) {
        if (made_from.contains(from)) made_from.insert(to);
      }
    }
    return made_from.contains(s);
  };
  auto follows = feeds;
  for (std::size_t s = 0; s < n; ++s) {
    for (const store::Output& o : runs[s].outputs) {
      if (!o.blake3) continue;
      const std::size_t last = *last_to_change(o.path);
      const bool undone = last < s && leaves(last, o.path) != nullptr && !reads(s, o.path);
      if (undone && !depends(last, s)) stale[s] = true;
      for (std::size_t t = s + 1; t < n; ++t) {
        if (leaves(t, o.path) != nullptr && !depends(s, t)) follows.insert({s, t});
      }
    }
  }
  for (std::size_t round = 0; round < n; ++round) {
    for (const auto& [from, to] : follows) {
      if (stale[from]) stale[to] = true;
    }
  }
  return stale;
}

RC_GTEST_PROP(StalenessProperty, EqualsBruteForce, ()) {
  std::vector<RunRecord> runs = *testing::random_runs();
  // Some stages ran again: numbers in one order, runs in another.
  std::vector<store::RunId> order;
  for (std::size_t i = 0; i < runs.size(); ++i) order.push_back(static_cast<store::RunId>(i + 1));
  for (std::size_t i = order.size(); i > 1; --i) {
    if (*rc::gen::inRange(0, 3) == 0) {
      std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
    }
  }
  Disk disk;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].stage = static_cast<std::int64_t>(i + 1);
    runs[i].id = order[i];
    // Mostly what was recorded, so that some stages are fresh.
    for (const auto& input : runs[i].inputs) {
      for (const std::string text : {"", "1", "2", "3", "4", "5"}) {
        if (digest_of(text) == input.blake3) disk.try_emplace(input.path, text);
      }
    }
  }
  if (*rc::gen::inRange(0, 2) == 0)
    disk[fmt::format("/project/{}", *rc::gen::inRange('a', 'h'))] = "9";
  const auto reasons = staleness(LiveStages(runs), check_of(disk));
  const std::vector<bool> expected = brute_force(runs, disk);
  for (std::size_t i = 0; i < runs.size(); ++i) RC_ASSERT(!reasons[i].empty() == expected[i]);
}

// What an earlier run left was edited: before the current run, which did without it, or after?
TEST(Staleness, AFileServersClockIsComparedWithItself) {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  const auto is_stale = [](std::int64_t began_by_server_ns, std::int64_t edited_by_server_ns) {
    RunRecord run = run_of("make -> a=1 b=1");
    run.stage = run.id = 1;
    run.started_unix_ns = 10 * kHour;
    if (began_by_server_ns != 0) {
      run.facts.push_back({.kind = store::PathFact::Kind::kBegan,
                           .path = "/project",
                           .target = std::to_string(began_by_server_ns)});
    }
    const LiveStages stages({run}, {{"/project/b"}});
    const auto content = [](const std::string& path, const auto&, auto) {
      return path == "/project/b" ? OnDisk::kChanged : OnDisk::kSame;
    };
    const auto changed = [&](const std::string&) { return std::optional(edited_by_server_ns); };
    return !staleness(stages, {.content = content, .changed_unix_ns = changed})[0].empty();
  };
  // The server is an hour behind: what was edited after the run began has an earlier time.
  EXPECT_TRUE(is_stale(9 * kHour, 9 * kHour + 1));
  EXPECT_FALSE(is_stale(9 * kHour, 9 * kHour - 1));
  // An hour ahead.
  EXPECT_FALSE(is_stale(11 * kHour, 11 * kHour - 1));
  EXPECT_TRUE(is_stale(11 * kHour, 11 * kHour + 1));
  // Of an older run the server's clock is not known.
  EXPECT_FALSE(is_stale(0, 10 * kHour - 1));
  EXPECT_TRUE(is_stale(0, 10 * kHour + 1));
}

TEST(DiskFiles, AreComparedByContentAndRemembered) {
  base::testing::TempDir directory;
  auto store = *store::Store::create(store::location_in(directory.path()), {});
  DiskFiles files = *DiskFiles::open(store);
  const std::string path = directory.path() / "f";
  std::ofstream(path) << "one";
  const timespec long_ago[2] = {{1'000'000, 0}, {1'000'000, 0}};
  ::utimensat(AT_FDCWD, path.c_str(), long_ago, 0);
  EXPECT_EQ(files.check(path, digest_of("one"), 3), OnDisk::kSame);
  EXPECT_EQ(files.check(path, digest_of("two"), 3), OnDisk::kChanged);
  EXPECT_EQ(files.check(path, digest_of("one"), 4), OnDisk::kChanged);
  EXPECT_EQ(files.check(path + "x", digest_of("one"), 3), OnDisk::kMissing);
  EXPECT_EQ(files.check(path + "/x", digest_of("one"), 3), OnDisk::kMissing);
  EXPECT_EQ(files.check(directory.path(), digest_of("one"), 3), OnDisk::kChanged);
  EXPECT_TRUE(files.save_hashes());
}

// The causes for a stage that listed /project/d with these names, when it now has `now`.
std::vector<Cause> causes_of_listing(const std::vector<std::string>& descriptions,
                                     std::vector<std::string> then,
                                     const std::optional<std::vector<std::string>>& now) {
  std::vector<RunRecord> runs;
  for (const std::string& description : descriptions) {
    runs.push_back(run_of(description));
    runs.back().stage = runs.back().id = static_cast<std::int64_t>(runs.size());
  }
  runs[0].facts.push_back(
      {.kind = store::PathFact::Kind::kListed, .path = "/project/d", .names = std::move(then)});
  const LiveStages stages(std::move(runs));
  const auto reasons = staleness(
      stages, {.content = [](const auto&, const auto&, auto) { return OnDisk::kSame; },
               .exists = [&](const std::string& path) { return path != "/project/d" || now; },
               .names = [&](const std::string&) { return now; }});
  std::vector<Cause> causes;
  for (const Reason& reason : reasons[0]) causes.push_back(reason.cause);
  return causes;
}

TEST(Staleness, WhatIsGoneFromAListedFolder) {
  using Names = std::vector<std::string>;
  const std::vector<Cause> fresh;
  const std::vector<Cause> gone = {Cause::kListedGone};
  EXPECT_EQ(causes_of_listing({"ls -> n=1"}, {"a", "b/"}, Names{"a", "b/"}), fresh);
  EXPECT_EQ(causes_of_listing({"ls -> n=1"}, {"a", "b/"}, Names{"b/"}), gone);
  EXPECT_EQ(causes_of_listing({"ls -> n=1"}, {"a", "b/"}, Names{"a"}), gone);
  EXPECT_EQ(causes_of_listing({"ls -> n=1"}, {"a"}, std::nullopt), gone);
  EXPECT_EQ(causes_of_listing({"ls -> n=1"}, {}, std::nullopt), gone);
  EXPECT_EQ(causes_of_listing({"ls -> n=1"}, {".hidden", "a"}, Names{"a"}), gone);
  // What it read there is an input; of the rest it is not known whether it mattered.
  EXPECT_EQ(causes_of_listing({"cat d/x.csv=1 -> n=1"}, {"a", "x.csv"}, Names{"x.csv"}), fresh);
  // A file of a later stage was there.
  EXPECT_EQ(causes_of_listing({"ls -> n=1", "make -> d/a=1"}, {"a", "b"}, Names{"b"}), gone);
  EXPECT_EQ(causes_of_listing({"ls -> n=1", "make -> d/a=1"}, {"a"}, std::nullopt), fresh);
}

}  // namespace
}  // namespace assay::lineage
