// `assay train` on several ranks, one process each: the bits of one rank, one recorded run, one
// line and no process left when a rank dies, layouts that are refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "base/process/process.h"
#include "base/testing/temp_dir.h"
#include "store/plans.h"
#include "store/store.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class TrainRanksCli : public ::testing::Test {
 protected:
  std::vector<std::string> command(const std::vector<std::string>& sets,
                                   const std::vector<std::string>& more) const {
    std::vector<std::string> list = {support::program(), "train", "demo", "--device", "cpu"};
    for (const char* set :
         {"model.dim=32", "model.layers=3", "model.heads=4", "model.kv_heads=2", "model.ffn=64",
          "model.context=32", "batch.sequence=32", "batch.micro_batch=2", "train.warmup_steps=2"}) {
      list.insert(list.end(), {"--set", set});
    }
    for (const std::string& set : sets) list.insert(list.end(), {"--set", set});
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }
  support::ProcessResult train(const std::vector<std::string>& sets, const std::string& out,
                               std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--out", out});
    return support::run({command(sets, more), "", directory_.path()});
  }
  support::ProcessResult assay(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), support::program());
    return support::run({arguments, "", directory_.path()});
  }
  [[nodiscard]] std::string content(const fs::path& path) const {
    std::ifstream file(directory_.path() / path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // The pids of processes that run this program in this test's folder.
  [[nodiscard]] std::vector<pid_t> processes(const char* program) const {
    std::vector<pid_t> list;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::error_code error;
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid > 0 && fs::read_symlink(entry.path() / "cwd", error) == directory_.path() &&
          fs::read_symlink(entry.path() / "exe", error).filename() == program) {
        list.push_back(pid);
      }
    }
    return list;
  }
  [[nodiscard]] std::vector<pid_t> trainers() const { return processes("assay-train"); }
  [[nodiscard]] static bool has_variable(pid_t pid, const std::string& entry) {
    std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
    std::ostringstream environment;
    environment << '\0' << file.rdbuf();
    return environment.str().find('\0' + entry + '\0') != std::string::npos;
  }

  base::testing::TempDir directory_;
};

TEST_F(TrainRanksCli, SixProcessesTrainWhatOneTrains) {
  const auto one = train({"train.steps=5", "batch.accumulate=6"}, "one");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const auto six =
      train({"train.steps=5", "batch.accumulate=2", "layout.fsdp=3", "layout.pp=2"}, "six");
  ASSERT_EQ(six.exit_code, 0) << six.err;
  EXPECT_THAT(six.out, HasSubstr("rank 0 of 6"));
  const auto same = assay({"checkpoint", "diff", "one", "six"});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  for (int rank = 1; rank < 6; ++rank) {
    EXPECT_THAT(content(fmt::format("six/ranks/rank-{}.log", rank)), HasSubstr("step 5: loss "));
  }
  // Both are one recorded run each.
  const base::Json runs = base::Json::parse(assay({"log", "--json"}).out);
  EXPECT_EQ(runs["runs"].size(), 2U) << runs;
  // Half of it on other ranks.
  ASSERT_EQ(
      train({"train.steps=5", "batch.accumulate=3", "layout.dp=2"}, "moved", {"--stop-after", "2"})
          .exit_code,
      0);
  const auto moved =
      train({"train.steps=5", "batch.accumulate=2", "layout.fsdp=3", "layout.zero=1"}, "moved",
            {"--resume"});
  ASSERT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_EQ(assay({"checkpoint", "diff", "one", "moved"}).exit_code, 0);
}

TEST_F(TrainRanksCli, InterleavedStagesTrainWhatOneRankTrains) {
  const std::vector<std::string> job = {"train.steps=3", "model.layers=5", "batch.accumulate=4"};
  ASSERT_EQ(train(job, "one").exit_code, 0);
  std::vector<std::string> spread = job;
  spread.insert(spread.end(),
                {"layout.pp=2", "layout.pp_schedule=interleaved", "layout.pp_chunks=2"});
  const auto two = train(spread, "two");
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(assay({"checkpoint", "diff", "one", "two"}).exit_code, 0);
}

TEST_F(TrainRanksCli, ZeroBubbleStagesTrainWhatOneRankTrains) {
  const std::vector<std::string> job = {"train.steps=3", "model.layers=4", "batch.accumulate=4"};
  ASSERT_EQ(train(job, "one").exit_code, 0);
  std::vector<std::string> spread = job;
  spread.insert(spread.end(), {"layout.pp=3", "layout.pp_schedule=zb-h1"});
  const auto three = train(spread, "three");
  ASSERT_EQ(three.exit_code, 0) << three.err;
  EXPECT_EQ(assay({"checkpoint", "diff", "one", "three"}).exit_code, 0);
}

TEST_F(TrainRanksCli, ARankThatDiesEndsAllWithOneLine) {
  std::vector<std::string> list =
      command({"train.steps=1000000", "layout.fsdp=3"}, {"--out", "killed", "--quiet"});
  auto process = base::Process::start(
      {.arguments = list,
       .environment = base::Environment::from_current(),
       .directory = directory_.path(),
       .redirections = {
           base::from_null(0),
           {.descriptor = 1, .path = directory_.path() / "printed", .flags = O_WRONLY | O_CREAT},
           {.descriptor = 2, .from = 1}}});
  ASSERT_TRUE(process.has_value());
  while (content("killed/ranks/rank-2.log").find("step 2:") == std::string::npos) {
    ASSERT_FALSE(process->wait_until(std::chrono::steady_clock::now()).has_value())
        << content("printed");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  pid_t victim = 0;
  for (const pid_t pid : trainers()) {
    if (has_variable(pid, "ASSAY_RANK=2")) victim = pid;
  }
  ASSERT_GT(victim, 0);
  ::kill(victim, SIGKILL);
  const auto exit = process->wait_until(std::chrono::steady_clock::now() + std::chrono::minutes(2));
  ASSERT_TRUE(exit.has_value()) << "it hangs";
  EXPECT_NE(exit->wait_status, 0);
  const std::string printed = content("printed");
  EXPECT_THAT(printed, HasSubstr("assay: rank 2: was killed by signal 9; see killed/ranks/rank-2"));
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1) << printed;
  EXPECT_TRUE(trainers().empty());
}

TEST_F(TrainRanksCli, TopShowsTheRanks) {
  auto process = base::Process::start(
      {.arguments =
           command({"train.steps=1000000", "layout.fsdp=3"}, {"--out", "running", "--quiet"}),
       .environment = base::Environment::from_current(),
       .directory = directory_.path(),
       .redirections = {
           base::from_null(0),
           {.descriptor = 1, .path = directory_.path() / "printed", .flags = O_WRONLY | O_CREAT},
           {.descriptor = 2, .from = 1}}});
  ASSERT_TRUE(process.has_value());
  base::Json ranks;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (ranks.empty() && std::chrono::steady_clock::now() < limit) {
    ASSERT_FALSE(process->wait_until(std::chrono::steady_clock::now()).has_value())
        << content("printed");
    const auto top = assay({"top", "--once", "--json"});
    ASSERT_EQ(top.exit_code, 0) << top.err;
    const base::Json seen = base::Json::parse(top.out);
    if (!seen["runs"].empty()) ranks = seen["runs"][0]["ranks"];
  }
  ASSERT_EQ(ranks.size(), 3U);
  int slowest = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ranks[i]["rank"], i);
    EXPECT_EQ(ranks[i]["place"], fmt::format("fsdp {}", i));
    EXPECT_GT(ranks[i]["step_s"], 0);
    slowest += ranks[i]["slowest"] == true ? 1 : 0;
  }
  EXPECT_EQ(slowest, 1);
  const std::string text = assay({"top", "--once"}).out;
  EXPECT_THAT(text, HasSubstr("own work"));
  EXPECT_THAT(text, HasSubstr("fsdp 2"));
  process->signal(SIGTERM);
  const auto exit = process->wait_until(std::chrono::steady_clock::now() + std::chrono::minutes(2));
  ASSERT_TRUE(exit.has_value()) << "it hangs";
  EXPECT_EQ(exit->wait_status, 0) << "it saves and ends";
}

TEST_F(TrainRanksCli, WhatCannotBeTrainedIsRefusedByItsKey) {
  const auto refused = [&](const std::vector<std::string>& sets, const char* line) {
    const auto outcome = train(sets, "refused");
    EXPECT_EQ(outcome.exit_code, 64) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(line));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refused({"layout.tp=4"}, "layout.tp: ");
  refused({"layout.cp=2", "batch.sequence=30"}, "batch.sequence: 30 tokens cannot be cut");
  refused({"layout.pp=4"}, "layout.pp: 3 layers are too few for 4 stages");
  refused({"layout.fsdp=2", "train.optimizer=\"muon\""},
          "layout.zero: Muon updates whole matrices");
}

TEST_F(TrainRanksCli, WhereDevicesAreCpusALayoutNeedsNoOption) {
  std::vector<std::string> list = command({"layout.fsdp=2", "train.steps=2"}, {"--out", "two"});
  std::erase(list, "--device");
  std::erase(list, "cpu");
  const auto two = support::run({list, "", directory_.path()});
  if (two.exit_code == 0) return;
  // Of GPUs there are as many as there are.
  EXPECT_THAT(two.err, HasSubstr("or --device cpu trains any layout on CPUs"));
}

// Weights grow by a factor of a million per step.
std::vector<std::string> diverging(std::vector<std::string> more) {
  more.insert(more.end(),
              {"train.learning_rate=1000", "train.weight_decay=1000", "train.schedule=constant",
               "train.warmup_steps=0", "train.steps=100", "train.max_skipped=7"});
  return more;
}

TEST_F(TrainRanksCli, ARunThatDivergesFailsInOneLine) {
  for (const std::string layout : {"layout.fsdp=1", "layout.fsdp=2", "layout.pp=2"}) {
    SCOPED_TRACE(layout);
    const auto run = train(diverging({layout}), layout, {"--quiet"});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err, ::testing::MatchesRegex(
                             "assay: train: 7 steps in a row, up to step [0-9]+, were skipped, "
                             "because their gradients were not finite; there is no good "
                             "checkpoint; try a lower train.learning_rate\n"));
    EXPECT_TRUE(fs::is_empty(directory_.path() / layout / "checkpoints"));
  }
}

TEST_F(TrainRanksCli, TextOfDivergedWeightsIsAnError) {
  // What a step makes of the weights is not known until the next: the newest checkpoint has the
  // weights that fail.
  const auto run = train(diverging({"checkpoint.every=1"}), "run", {"--quiet"});
  ASSERT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("; the last good checkpoint is run/checkpoints/step-"));
  EXPECT_THAT(run.err, HasSubstr("(move newer ones away before --resume: "));
  std::ofstream(directory_.path() / "text") << "Some text to predict.";
  const auto score = assay({"score", "run", "text"});
  EXPECT_EQ(score.exit_code, 1);
  EXPECT_THAT(score.err, ::testing::ContainsRegex("run/checkpoints/step-[0-9]+: its loss over "
                                                  "this text is "));
  EXPECT_EQ(std::count(score.err.begin(), score.err.end(), '\n'), 1) << score.err;
  EXPECT_EQ(score.out, "");
  const auto generate = assay({"generate", "run", "--prompt", "Some"});
  EXPECT_EQ(generate.exit_code, 1);
  EXPECT_THAT(generate.err, HasSubstr("its output for this text is not finite"));
}

// Two processes with torchrun's variables, as it would start them.
class StartedByOthers : public TrainRanksCli {
 protected:
  base::Result<base::Process> start_rank(int rank, const std::string& out,
                                         const std::string& from = ".",
                                         const std::string& steps = "train.steps=3") {
    base::ProcessOptions options{
        .arguments = command({"layout.fsdp=2", steps}, {"--out", directory_.path() / out}),
        .environment = base::Environment::from_current(),
        .directory = directory_.path() / from,
        .redirections = {base::from_null(0),
                         {.descriptor = 1,
                          .path = directory_.path() / fmt::format("printed-{}", rank),
                          .flags = O_WRONLY | O_CREAT},
                         {.descriptor = 2, .from = 1}}};
    options.environment.set("RANK", fmt::format("{}", rank));
    options.environment.set("LOCAL_RANK", fmt::format("{}", rank));
    for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) options.environment.set(name, "2");
    options.environment.set("MASTER_ADDR", "127.0.0.1");
    // Below the ports that the kernel gives to others; tests of one machine differ in their pids.
    options.environment.set("MASTER_PORT", fmt::format("{}", 12000 + ::getpid() % 20000));
    return base::Process::start(std::move(options));
  }
  int exit_of(base::Process& process) {
    const auto exit =
        process.wait_until(std::chrono::steady_clock::now() + std::chrono::minutes(2));
    return exit ? exit->wait_status : -1;
  }
};

TEST_F(StartedByOthers, AllRanksAreOneRun) {
  auto one = start_rank(1, "both");
  auto zero = start_rank(0, "both");
  ASSERT_TRUE(one && zero);
  EXPECT_EQ(exit_of(*one), 0) << content("printed-1");
  EXPECT_EQ(exit_of(*zero), 0) << content("printed-0");
  const base::Json runs = base::Json::parse(assay({"log", "--json"}).out)["runs"];
  ASSERT_EQ(runs.size(), 1U) << runs;
  // A sanitizer looks for leaks from a separate process.
  if (!support::program_is_sanitized()) {
    EXPECT_EQ(runs[0]["processes"], 2);
  }
  EXPECT_EQ(runs[0]["complete"], true);
  const std::string shown = assay({"show", "last"}).out;
  EXPECT_THAT(shown, HasSubstr("both/ranks/rank-1.log"));
  EXPECT_THAT(shown, HasSubstr("both/checkpoints/step-3/weights-rank-00001-of-00002.safetensors"));
  EXPECT_THAT(shown, HasSubstr("both/metrics.jsonl"));
  EXPECT_THAT(shown, Not(HasSubstr(".parts-"))) << "is what the recording itself leaves";
  // What ranks measured is in the report.
  const auto report = assay({"report", "last", "--format", "json"});
  ASSERT_EQ(report.exit_code, 0) << report.err;
  const base::Json ranks = base::Json::parse(report.out)["parts"][0]["data"]["ranks"];
  ASSERT_EQ(ranks["ranks"].size(), 2U) << ranks;
  for (int rank = 0; rank < 2; ++rank) {
    const base::Json& own = ranks["ranks"][static_cast<std::size_t>(rank)];
    EXPECT_EQ(own["place"], fmt::format("fsdp {}", rank));
    EXPECT_EQ(own["steps"], 2) << "the first one is left out";
    EXPECT_GT(own["step_s"], 0);
    EXPECT_GE(own["wait_s"], 0);
    EXPECT_LE(own["wait_s"], own["step_s"]);
    EXPECT_GT(own["planned_bytes"], 0);
    EXPECT_GT(own["host_bytes"], 0);
  }
  EXPECT_TRUE(ranks["slowest"]["rank"].is_number());
  EXPECT_FALSE(fs::exists(directory_.path() / "both/.assay-secret"));
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(directory_.path() / "both/ranks")) {
    left.push_back(entry.path().filename());
  }
  EXPECT_EQ(left, std::vector<std::string>{"rank-1.log"});
}

// Ranks on nodes that do not have the project's folder.
TEST_F(StartedByOthers, OnlyRank0MakesAStore) {
  for (const char* name : {"here", "elsewhere"}) fs::create_directory(directory_.path() / name);
  auto one = start_rank(1, "both", "elsewhere");
  auto zero = start_rank(0, "both", "here");
  ASSERT_TRUE(one && zero);
  EXPECT_EQ(exit_of(*one), 0) << content("printed-1");
  EXPECT_EQ(exit_of(*zero), 0) << content("printed-0");
  EXPECT_TRUE(fs::exists(directory_.path() / "here/.assay/assay.db"));
  EXPECT_TRUE(fs::is_empty(directory_.path() / "elsewhere"));
  const auto shown =
      support::run({{support::program(), "show", "last"}, "", directory_.path() / "here"});
  EXPECT_THAT(shown.out, HasSubstr("both/ranks/rank-1.log"));
}

TEST_F(StartedByOthers, NothingIsLeftBehindWhereRank0CannotRecord) {
  for (const char* name : {"here", "elsewhere"}) fs::create_directory(directory_.path() / name);
  std::ofstream(directory_.path() / "here/.assay") << "is not a folder";
  auto one = start_rank(1, "both", "elsewhere");
  auto zero = start_rank(0, "both", "here");
  ASSERT_TRUE(one && zero);
  EXPECT_EQ(exit_of(*one), 0) << content("printed-1");
  EXPECT_EQ(exit_of(*zero), 0) << content("printed-0");
  EXPECT_THAT(content("printed-0"), HasSubstr("this run is not recorded: "));
  EXPECT_THAT(content("printed-1"), HasSubstr("assay: what this rank did is not recorded: rank 0, "
                                              "which records the run, is itself not recorded"));
  EXPECT_TRUE(fs::is_empty(directory_.path() / "elsewhere"));
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(directory_.path() / "both/ranks")) {
    left.push_back(entry.path().filename());
  }
  EXPECT_EQ(left, std::vector<std::string>{"rank-1.log"});
}

// All that rank 0 had is killed, and rank 1 leaves its part. The next attempt finds it there.
TEST_F(StartedByOthers, AnAttemptAfterAKilledOneIsARunOfItsOwn) {
  const auto parts = [&](const fs::path& out) {
    return directory_.path() / out / "ranks/.parts-job";
  };
  {
    auto one = start_rank(1, "killed", ".", "train.steps=1000000");
    auto zero = start_rank(0, "killed", ".", "train.steps=1000000");
    ASSERT_TRUE(one && zero);
    while (content("killed/ranks/rank-1.log").find("step 2:") == std::string::npos) {
      ASSERT_FALSE(one->wait_until(std::chrono::steady_clock::now()).has_value())
          << content("printed-1");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    // Stopped first: who lives longer would clean up.
    for (const int signal : {SIGSTOP, SIGKILL}) {
      for (const char* program : {"assay", "assay-train"}) {
        for (const pid_t pid : processes(program)) {
          if (has_variable(pid, "RANK=0")) ::kill(pid, signal);
        }
      }
    }
    EXPECT_NE(exit_of(*zero), 0);
    EXPECT_NE(exit_of(*one), 0);
  }
  ASSERT_TRUE(fs::exists(parts("killed") / "rank-1.part"));
  fs::create_directories(parts("again").parent_path());
  fs::rename(parts("killed"), parts("again"));
  // Rank 1's program fails before it has met rank 0: so there is no other part of it.
  fs::create_directories(directory_.path() / "again/ranks/rank-1.log");
  auto zero = start_rank(0, "again");
  auto one = start_rank(1, "again");
  ASSERT_TRUE(zero && one);
  EXPECT_NE(exit_of(*one), 0);
  EXPECT_NE(exit_of(*zero), 0);
  const std::string shown = assay({"show", "last"}).out;
  EXPECT_THAT(shown, HasSubstr("it ended before connecting to rank 0"));
  EXPECT_THAT(shown, Not(HasSubstr("killed/"))) << "which the part of the first attempt has";
  EXPECT_FALSE(fs::exists(parts("again")));
}

// Joining takes up to a minute; nobody waits that long for a rank that has already failed.
TEST_F(StartedByOthers, ARankThatFailsBeforeItHasJoinedEndsTheOthersWithItsLine) {
  fs::create_directories(directory_.path() / "early/ranks/rank-1.log");
  const auto begun = std::chrono::steady_clock::now();
  auto zero = start_rank(0, "early");
  auto one = start_rank(1, "early");
  ASSERT_TRUE(zero && one);
  EXPECT_NE(exit_of(*one), 0);
  EXPECT_NE(exit_of(*zero), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(45));
  EXPECT_THAT(content("printed-0"), HasSubstr("assay: rank 1: "));
  EXPECT_THAT(content("printed-0"), HasSubstr("rank-1.log"));
  EXPECT_THAT(content("printed-1"), HasSubstr("rank-1.log: cannot be written"));
  EXPECT_TRUE(assay({"show", "last"}).out.find("what rank 1 on ") != std::string::npos)
      << "the run says what is missing";
}

TEST_F(TrainRanksCli, AnotherNumberOfRanksThanTheLayoutHasIsRefused) {
  ::setenv("RANK", "0", 1);
  ::setenv("WORLD_SIZE", "3", 1);
  ::setenv("LOCAL_RANK", "0", 1);
  ::setenv("LOCAL_WORLD_SIZE", "3", 1);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  const auto outcome = train({"layout.fsdp=2"}, "other");
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR"}) {
    ::unsetenv(name);
  }
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.err, HasSubstr("has a layout of 2 ranks, but torchrun"));
}

// `assay plan` before, what `assay train` prints and stores when it starts, and what rank 0 does,
// are the same figures: memory, calls and bytes.
TEST_F(TrainRanksCli, ThePlanIsThatOfAssayPlan) {
  std::ofstream(directory_.path() / "mine.toml")
      << "[model]\nextends = \"tiny\"\ndim = 32\nlayers = 3\nheads = 4\nkv_heads = 2\nffn = 64\n"
         "context = 32\n[batch]\nsequence = 32\nmicro_batch = 2\naccumulate = 4\n"
         "[train]\nsteps = 1\n[cluster]\ndevices_per_node = 1\n"
         "[cluster.device]\nkind = \"cpu\"\nname = \"cores\"\n";
  const std::vector<std::vector<std::string>> layouts = {
      {},
      {"layout.dp=2"},
      {"layout.fsdp=3", "layout.zero=1"},
      {"layout.fsdp=2", "layout.pp=2"},
      {"layout.pp=3", "train.recompute=full"},
  };
  for (const std::vector<std::string>& layout : layouts) {
    const std::string out = fmt::format("run-{}", &layout - layouts.data());
    std::vector<std::string> plan = {"plan", "mine.toml", "--json"};
    std::vector<std::string> train = {"train", "mine.toml", "--device", "cpu",
                                      "--out", out,         "--json"};
    for (const std::string& set : layout) {
      for (auto* list : {&plan, &train}) list->insert(list->end(), {"--set", set});
    }
    const auto planned = assay(plan);
    ASSERT_EQ(planned.exit_code, 0) << planned.err;
    const auto trained = assay(train);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const base::Json before = base::Json::parse(planned.out);
    const base::Json printed = base::Json::parse(trained.out.substr(0, trained.out.find('\n')));
    ASSERT_EQ(printed["event"], "plan");
    EXPECT_EQ(printed["recompute"], before["recompute"]);
    EXPECT_TRUE(before["comm"]["counted"].get<bool>());
    if (before["comm"]["rank"] == 0) {
      EXPECT_EQ(printed["collectives"], before["collectives"]);
    }
    if (before["memory_bytes"]["rank"] == 0) {
      EXPECT_EQ(printed["planned_bytes"], before["memory_bytes"]["total"]);
    }
    auto store = store::Store::open(store::location_in(directory_.path()), {});
    ASSERT_TRUE(store.has_value()) << store.error().line();
    const auto latest = base::Json::parse(assay({"log", "--json"}).out)["runs"][0]["id"];
    const auto record = store::load_plan(*store, store::RunId{latest.get<std::int64_t>()});
    ASSERT_TRUE(record.has_value() && record->has_value());
    const base::Json& stored = (*record)->plan;
    for (const char* key : {"ranks", "tokens_per_step", "recompute", "framework", "comm",
                            "comm_groups", "collectives"}) {
      EXPECT_EQ(stored[key], before[key]) << key;
    }
    for (const auto& [key, value] : before["memory_bytes"].items()) {
      if (key == "device") continue;
      EXPECT_EQ(stored["memory_bytes"][key], value) << key;
    }
    EXPECT_EQ((*record)->memory_bytes, before["memory_bytes"]["total"].get<std::int64_t>());
  }
}

TEST_F(TrainRanksCli, MoreRanksThanGpusAreRefused) {
  const auto train_on = [&](const std::string& per_gpu) {
    std::vector<std::string> list = {"env",
                                     "CUDA_VISIBLE_DEVICES=",
                                     "ASSAY_RANKS_PER_GPU=" + per_gpu,
                                     support::program(),
                                     "train",
                                     "demo",
                                     "--device",
                                     "cuda"};
    for (const char* set : {"cluster.extends=h200-4-ib", "cluster.nodes=1", "layout.fsdp=2",
                            "cluster.devices_per_node=4"}) {
      list.insert(list.end(), {"--set", set});
    }
    list.insert(list.end(), {"--out", "out"});
    return support::run({list, "", directory_.path()});
  };
  const auto refused = train_on("2");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err,
              HasSubstr("layout.ranks: 4 ranks need 2 GPUs, but none can be used here; "));
  const auto wrong = train_on("none");
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_THAT(wrong.err,
              HasSubstr("ASSAY_RANKS_PER_GPU: 'none' is not a whole number from 1 to 64"));
}

}  // namespace
}  // namespace assay
