// Several ranks on a CPU give the same losses and weights as one rank with the same batch.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/file.h"
#include "base/testing/temp_dir.h"
#include "comm/local.h"
#include "hash/blake3.h"
#include "spec/enum_names.h"
#include "spec/testing/model_shapes.h"
#include "step/recompute.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/diff.h"
#include "train/cpu/cpu_backend.h"
#include "train/exchanged_as_planned.h"
#include "train/hf_files.h"
#include "train/testing/executed_as_listed.h"
#include "train/tiny_job.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSequences = 24;  // per step, over all ranks

struct Kind {
  const char* name;
  spec::JobSpec job;
};

std::vector<Kind> kinds() {
  spec::JobSpec llama = tiny_job();
  llama.model.layers = 5;  // which no pipeline divides
  llama.train.steps = 6;
  spec::JobSpec gpt = llama;
  gpt.model = spec::testing::gpt2_shape(llama.model);
  // A bias of keys has no effect: its gradient is rounding error, which Adam would amplify.
  gpt.train.epsilon = 1e-6;
  spec::JobSpec muon = llama;
  muon.model.qk_norm = spec::QkNorm::kLearned;
  muon.train.optimizer = spec::Optimizer::kMuon;
  return {{"llama", llama}, {"gpt", gpt}, {"muon", muon}};
}

// Ranks in different ways: every layout of a job is drawn from these.
struct Spread {
  std::int64_t dp = 1;
  std::int64_t fsdp = 1;
  std::int64_t zero = 1;
  spec::ShardUnit unit = spec::ShardUnit::kBlock;
  std::int64_t pp = 1;
  spec::PipelineSchedule schedule = spec::PipelineSchedule::k1f1b;
  std::int64_t chunks = 1;
  std::int64_t tp = 1;
  bool sp = false;
  std::int64_t micro_batch = 2;
  std::int64_t cp = 1;

  [[nodiscard]] int data_ranks() const { return static_cast<int>(dp * fsdp); }
  [[nodiscard]] int ranks() const { return static_cast<int>(dp * fsdp * pp * tp * cp); }
  [[nodiscard]] std::string text() const {
    return fmt::format("dp {} fsdp {} zero {}{} pp {} x {} {} tp {}{} cp {}", dp, fsdp, zero,
                       unit == spec::ShardUnit::kModule ? " module" : "", pp, chunks,
                       spec::to_text(schedule), tp, sp ? " sp" : "", cp);
  }
};

spec::JobSpec spread(spec::JobSpec job, const Spread& over) {
  job.layout.dp = over.dp;
  job.layout.fsdp = over.fsdp;
  job.layout.zero = over.zero;
  job.layout.unit = over.unit;
  job.batch.micro_batch = over.micro_batch;
  job.layout.pp = over.pp;
  job.layout.pp_schedule = over.schedule;
  job.layout.pp_chunks = over.chunks;
  job.layout.tp = over.tp;
  job.layout.sequence_parallel = over.sp;
  job.layout.cp = over.cp;
  job.batch.accumulate = kSequences / (over.micro_batch * over.data_ranks());
  return job;
}

class RanksTest : public ::testing::Test {
 protected:
  void SetUp() override { set_ = std::make_unique<data::TokenSet>(text_tokens(dir_.path())); }

  struct Rank {
    comm::Communicator& ranks;
    RecordingReporter& reporter;
    TrainerOptions options;
    ExecutedLog* log = nullptr;
    std::int32_t vocabulary = 256;
  };
  // Everything that one rank does.
  base::Result<TrainingResult> run(const spec::JobSpec& job, Rank rank) {
    step::Choices choices = step::choices_of(job);
    ASSAY_TRY(choices.layout, step::layout_of(job.layout, rank.ranks.rank()));
    ASSAY_TRY(const auto groups, RankGroups::make(rank.ranks, choices.layout));
    const auto backend = cpu::make_cpu_backend(1, groups.get());
    ASSAY_TRY(const Planned planned,
              plan_step(job, choices, memory_budget(*backend, std::int64_t{1} << 32U)));
    ASSAY_TRY_VOID(backend->prepare(planned.program, planned.plan));
    const data::BatchReader reader(*set_, static_cast<std::uint64_t>(job.train.seed),
                                   rank.vocabulary);
    rank.options.out = dir_.path() / rank.options.out;
    rank.options.ranks = &rank.ranks;
    backend->log_to(rank.log);
    ASSAY_TRY(TrainingResult result,
              train(job, planned, *backend, reader, rank.options, rank.reporter));
    if (rank.log != nullptr) {
      testing::expect_executed_as_listed(*rank.log, planned.program, result.step);
      expect_exchanged_as_planned(*rank.log, job, planned.program, planned.plan, result.step);
    }
    return result;
  }

  struct Outcome {
    std::vector<RecordingReporter> reporters;
    base::Result<void> result;
  };
  Outcome run_ranks(const spec::JobSpec& job, int ranks, const TrainerOptions& options,
                    const std::function<void(Rank&)>& change = {}) {
    return run_spread(job, {.fsdp = ranks}, options, change);
  }
  Outcome run_spread(const spec::JobSpec& job, const Spread& over, const TrainerOptions& options,
                     const std::function<void(Rank&)>& change = {}) {
    const int ranks = over.ranks();
    Outcome outcome{std::vector<RecordingReporter>(static_cast<std::size_t>(ranks)), {}};
    outcome.result = comm::run_local(ranks, [&](comm::Communicator& c) -> base::Result<void> {
      Rank rank{c, outcome.reporters[static_cast<std::size_t>(c.rank())], options};
      if (change) change(rank);
      ASSAY_TRY_VOID(run(spread(job, over), rank));
      return {};
    });
    return outcome;
  }

  [[nodiscard]] fs::path saved(const std::string& out, std::int64_t step) const {
    return dir_.path() / out / "checkpoints" / fmt::format("step-{}", step);
  }
  // What a checkpoint has, whichever ranks wrote it: the state, and the hash of every tensor.
  std::vector<std::string> contents(const std::string& out, std::int64_t step) {
    const auto from = checkpoint::Checkpoint::open(saved(out, step));
    EXPECT_TRUE(from.has_value()) << from.error().line();
    if (!from) return {};
    EXPECT_TRUE(from->verify().has_value());
    const checkpoint::TrainingState& state = from->manifest().state;
    std::vector<std::string> list = {fmt::format("step {} tokens {} seed {} {}", state.step,
                                                 state.tokens, state.seed, state.layout),
                                     state.data_cursor.dump() + state.extra.dump()};
    for (const char* part : {"weights", "optimizer"}) {
      const auto set = from->part(part);
      EXPECT_TRUE(set.has_value());
      for (const checkpoint::StoredTensor& tensor : set->tensors()) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(*tensor.info.bytes()));
        EXPECT_TRUE(set->read(tensor, 0, bytes).has_value());
        list.push_back(fmt::format("{} {} {} [{}] {}", part, tensor.info.name,
                                   checkpoint::dtype_name(tensor.info.dtype),
                                   fmt::join(tensor.info.shape, ", "), hash::blake3(bytes).hex()));
      }
    }
    return list;
  }
  // The hashes of a checkpoint's tensors by a reader that shares no code with ours.
  std::string read_independently(const std::string& out, std::int64_t step) {
    const fs::path list = dir_.path() / "list.txt";
    const std::string command =
        fmt::format("python3 {}/src/train/checkpoint/testing/read_pieces.py {} > {}",
                    ASSAY_SOURCE_DIR, saved(out, step).string(), list.string());
    EXPECT_EQ(std::system(command.c_str()), 0);
    const auto text = base::read_file(list, base::Bytes(std::int64_t{1} << 20U));
    EXPECT_TRUE(text.has_value() && text->find("optimizer first_moment/") != std::string::npos);
    return text.value_or("");
  }
  // The same, and by our own comparison.
  void expect_same(const std::string& a, const std::string& b, std::int64_t step) {
    EXPECT_EQ(contents(a, step), contents(b, step));
    const auto left = checkpoint::Checkpoint::open(saved(a, step));
    const auto right = checkpoint::Checkpoint::open(saved(b, step));
    ASSERT_TRUE(left && right);
    const auto found = checkpoint::diff(*left, *right);
    ASSERT_TRUE(found.has_value()) << found.error().line();
    EXPECT_TRUE(found->equal());
    EXPECT_GT(found->compared_tensors, 50);
  }
  // A job that is spread: reports and checkpoint of one rank alone, and each rank's list executed.
  void expect_trains_as(const std::string& alone, const Outcome& one, const spec::JobSpec& job,
                        const Spread& over, const std::string& out) {
    std::vector<ExecutedLog> logs(static_cast<std::size_t>(over.ranks()));
    const Outcome many = run_spread(job, over, {.out = out}, [&](Rank& rank) {
      rank.log = &logs[static_cast<std::size_t>(rank.ranks.rank())];
    });
    ASSERT_TRUE(many.result.has_value()) << many.result.error().line();
    for (const RecordingReporter& reporter : many.reporters) {
      ASSERT_EQ(reporter.reports.size(), 6U);
      for (std::size_t i = 0; i < 6; ++i) {
        const StepReport& found = reporter.reports[i];
        const StepReport& expected = one.reporters[0].reports[i];
        EXPECT_EQ(found.loss, expected.loss);
        EXPECT_EQ(found.z_loss, expected.z_loss);
        EXPECT_EQ(found.gradient_norm, expected.gradient_norm);
        EXPECT_EQ(found.tokens, expected.tokens);
      }
    }
    expect_same(out, alone, 6);
  }

  // Weights and first moments, up to the rounding of sums in another order. Where a gradient is
  // nearly zero, Adam divides rounding errors by rounding errors, so some elements may differ more.
  void expect_near(const std::string& a, const std::string& b, std::int64_t step) {
    const auto left = checkpoint::Checkpoint::open(saved(a, step));
    const auto right = checkpoint::Checkpoint::open(saved(b, step));
    ASSERT_TRUE(left && right);
    for (const char* part : {"weights", "optimizer"}) {
      const auto x = left->part(part);
      const auto y = right->part(part);
      ASSERT_TRUE(x && y);
      for (const checkpoint::StoredTensor& tensor : y->tensors()) {
        const auto floats = [&](const checkpoint::TensorSet& set) {
          std::vector<float> values(static_cast<std::size_t>(tensor.info.elements()));
          const auto* stored = set.find(tensor.info.name);
          EXPECT_TRUE(stored != nullptr && stored->info == tensor.info);
          if (stored != nullptr) {
            EXPECT_TRUE(set.read(*stored, 0, std::as_writable_bytes(std::span(values))));
          }
          return values;
        };
        const std::vector<float> found = floats(*x);
        const std::vector<float> expected = floats(*y);
        double apart = 0;
        double size = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
          const double difference =
              static_cast<double>(found[i]) - static_cast<double>(expected[i]);
          apart += difference * difference;
          size += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
        }
        EXPECT_LE(std::sqrt(apart), 1e-3 * std::sqrt(size) + 1e-12)
            << part << " " << tensor.info.name;
      }
    }
  }
  // Reads the text in windows of another length.
  void use_windows_of(std::uint64_t sequence) {
    auto set = data::TokenSet::open({.paths = {(dir_.path() / "text.tokens").string()}}, sequence);
    ASSERT_TRUE(set.has_value()) << set.error().line();
    set_ = std::make_unique<data::TokenSet>(*std::move(set));
  }
  std::map<std::string, std::vector<float>> tensors(const std::string& out, std::int64_t step,
                                                    const char* part) {
    std::map<std::string, std::vector<float>> list;
    const auto from = checkpoint::Checkpoint::open(saved(out, step));
    EXPECT_TRUE(from.has_value()) << from.error().line();
    if (!from) return list;
    const auto set = from->part(part);
    EXPECT_TRUE(set.has_value());
    for (const checkpoint::StoredTensor& tensor : set->tensors()) {
      std::vector<float>& values = list[tensor.info.name];
      values.resize(static_cast<std::size_t>(*tensor.info.bytes()) / 4);
      EXPECT_TRUE(set->read(tensor, 0, std::as_writable_bytes(std::span(values))).has_value());
    }
    return list;
  }
  // Every tensor, by the norm of the difference.
  void expect_close(const std::string& a, const std::string& b, std::int64_t step, const char* part,
                    double tolerance) {
    const auto found = tensors(a, step, part);
    const auto expected = tensors(b, step, part);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, values] : expected) {
      const std::vector<float>& others = found.at(name);
      ASSERT_EQ(others.size(), values.size());
      double difference = 0;
      double norm = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<double>(values[i]);
        const double away = static_cast<double>(others[i]) - value;
        difference += away * away;
        norm += value * value;
      }
      EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(norm)) << name;
    }
  }
  base::testing::TempDir dir_;
  std::unique_ptr<data::TokenSet> set_;
  std::map<std::string, double> validated_;  // the last loss, by run
};

// The same losses, norms, weights and optimizer, to the last bit, in every layout; and each rank
// executes its list.
TEST_F(RanksTest, TrainWhatOneRankTrains) {
  constexpr spec::ShardUnit kModule = spec::ShardUnit::kModule;
  const std::vector<Spread> spreads = {
      {.fsdp = 2},
      {.fsdp = 3, .zero = 2},
      {.fsdp = 2, .zero = 3},
      {.fsdp = 4, .zero = 3, .unit = kModule},
      {.fsdp = 6, .zero = 3},
      {.dp = 3},
      {.dp = 2, .fsdp = 2, .zero = 3},
      {.dp = 2, .fsdp = 3, .zero = 1},
      {.dp = 3, .fsdp = 4, .zero = 3, .unit = kModule},
      {.pp = 2},
      {.pp = 2, .schedule = spec::PipelineSchedule::kGpipe},
      {.pp = 4},
      {.pp = 2, .schedule = spec::PipelineSchedule::kInterleaved, .chunks = 2},
      {.fsdp = 2, .zero = 3, .pp = 2},
      {.dp = 2, .fsdp = 2, .zero = 1, .pp = 3},
      {.fsdp = 3,
       .zero = 3,
       .unit = kModule,
       .pp = 2,
       .schedule = spec::PipelineSchedule::kInterleaved,
       .chunks = 2},
  };
  const std::vector<Kind> all = kinds();
  for (const Kind& kind : all) {
    const std::string alone = fmt::format("{}-alone", kind.name);
    const Outcome one = run_ranks(kind.job, 1, {.out = alone});
    ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
    for (const Spread& drawn : spreads) {
      // All of them for one kind, and some for the others.
      const auto which = (&drawn - spreads.data()) + (&kind - all.data());
      if (&kind != all.data() && which % 3 != 0) continue;
      Spread over = drawn;
      if (kind.job.train.optimizer == spec::Optimizer::kMuon) over.zero = 2;
      SCOPED_TRACE(fmt::format("{} on {}", kind.name, over.text()));
      const std::string out = fmt::format("{}-{}", kind.name, &drawn - spreads.data());
      expect_trains_as(alone, one, kind.job, over, out);
    }
  }
}

// With every policy of recomputation: what the later gradients of weights read must still be there.
TEST_F(RanksTest, ZeroBubblePipelinesTrainWhatOneRankTrains) {
  constexpr spec::PipelineSchedule kZbH1 = spec::PipelineSchedule::kZbH1;
  const std::vector<Spread> spreads = {
      {.pp = 2, .schedule = kZbH1},
      {.pp = 3, .schedule = kZbH1},
      {.pp = 4, .schedule = kZbH1},
      {.fsdp = 2, .zero = 3, .pp = 2, .schedule = kZbH1},
      {.dp = 2, .fsdp = 2, .zero = 1, .pp = 3, .schedule = kZbH1},
      {.fsdp = 3, .zero = 3, .unit = spec::ShardUnit::kModule, .pp = 2, .schedule = kZbH1},
  };
  std::size_t which = 0;
  for (Kind& kind : kinds()) {
    const std::string alone = fmt::format("{}-alone", kind.name);
    const Outcome one = run_ranks(kind.job, 1, {.out = alone});
    ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
    for (const auto recompute : step::kRecomputePolicies) {
      kind.job.train.recompute = recompute;
      for (int times = 0; times < 2; ++times) {
        Spread over = spreads[which++ % spreads.size()];
        if (kind.job.train.optimizer == spec::Optimizer::kMuon) over.zero = 2;
        SCOPED_TRACE(
            fmt::format("{} on {} recompute {}", kind.name, over.text(), spec::to_text(recompute)));
        expect_trains_as(alone, one, kind.job, over, fmt::format("{}-{}", kind.name, which));
      }
    }
  }
}

// Tensor-parallel ranks add up products in parts, so bits differ from one rank's; the same layout
// has the same bits every time. The vocabulary of 256 becomes odd, so that ranks' parts of the
// tables are padded differently.
TEST_F(RanksTest, TensorParallelRanksTrainWhatOneRankTrains) {
  const std::vector<Spread> spreads = {
      {.tp = 2},
      {.tp = 2, .sp = true},
      {.fsdp = 2, .zero = 3, .tp = 2, .sp = true},
      {.fsdp = 3, .zero = 2, .tp = 2},
      {.dp = 2, .pp = 2, .tp = 2, .sp = true},
      {.dp = 2, .fsdp = 2, .zero = 1, .tp = 2},
  };
  for (Kind kind : kinds()) {
    if (kind.job.train.optimizer == spec::Optimizer::kMuon) {
      kind.job.train.optimizer = spec::Optimizer::kAdamw;  // leaves learned norms of heads
    }
    kind.job.model.vocab = 301;
    const std::string alone = fmt::format("{}-alone", kind.name);
    const Outcome one = run_ranks(kind.job, 1, {.out = alone});
    ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
    for (const Spread& over : spreads) {
      // All of them for one kind, and some for the others.
      const auto which = &over - spreads.data();
      const bool all = kind.name == std::string("llama");
      if (!all && which != (kind.name == std::string("gpt") ? 2 : 4)) continue;
      SCOPED_TRACE(fmt::format("{} on {}", kind.name, over.text()));
      std::vector<std::string> first;
      for (int again = 0; again < (all ? 1 : 2); ++again) {
        const std::string out = fmt::format("{}-{}-{}", kind.name, &over - spreads.data(), again);
        std::vector<ExecutedLog> logs(static_cast<std::size_t>(over.ranks()));
        const Outcome many = run_spread(kind.job, over, {.out = out}, [&](Rank& rank) {
          rank.log = &logs[static_cast<std::size_t>(rank.ranks.rank())];
        });
        ASSERT_TRUE(many.result.has_value()) << many.result.error().line();
        for (const RecordingReporter& reporter : many.reporters) {
          ASSERT_EQ(reporter.reports.size(), 6U);
          for (std::size_t i = 0; i < 6; ++i) {
            const StepReport& found = reporter.reports[i];
            const StepReport& expected = one.reporters[0].reports[i];
            EXPECT_EQ(found.loss, many.reporters[0].reports[i].loss);
            EXPECT_NEAR(found.loss, expected.loss, 2e-5 * expected.loss);
            EXPECT_NEAR(found.gradient_norm, expected.gradient_norm, 2e-4 * expected.gradient_norm);
            EXPECT_EQ(found.tokens, expected.tokens);
          }
        }
        expect_near(out, alone, 6);
        if (first.empty()) first = contents(out, 6);
        EXPECT_EQ(contents(out, 6), first);
      }
    }
  }
}

// What tensor-parallel ranks have saved, others go on with, and one rank with what these saved.
TEST_F(RanksTest, TensorParallelCheckpointsAreResumedInAnyLayout) {
  spec::JobSpec job = kinds()[1].job;
  job.checkpoint.keep = 10;
  const std::vector<Spread> ways = {{.tp = 2, .sp = true},
                                    {.fsdp = 3, .zero = 3, .tp = 2},
                                    {.fsdp = 1},
                                    {.fsdp = 2, .zero = 1, .pp = 2, .tp = 2, .sp = true}};
  ASSERT_TRUE(run_spread(job, ways[0], {.out = "saved", .stop_after = 2}).result.has_value());
  for (const Spread& way : ways) {
    SCOPED_TRACE(way.text());
    const std::string out = fmt::format("way-{}", &way - ways.data());
    fs::copy(dir_.path() / "saved", dir_.path() / out, fs::copy_options::recursive);
    ASSERT_TRUE(run_spread(job, way, {.out = out, .resume = true, .stop_after = 3}).result);
    ASSERT_TRUE(run_spread(job, ways[2], {.out = out, .resume = true, .stop_after = 4}).result);
    EXPECT_EQ(read_independently(out, 2), read_independently("saved", 2));
    EXPECT_NE(read_independently(out, 3), read_independently("saved", 2));
    if (&way != ways.data()) expect_near(out, "way-0", 4);
  }
}

// Where ranks divide products, bits are theirs; stages and schedules change nothing about that.
TEST_F(RanksTest, ZeroBubblePipelinesOfTensorParallelRanksTrainWhatThoseTrain) {
  const std::vector<Kind> all = kinds();
  for (const bool sp : {false, true}) {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string alone = fmt::format("{}-tp-{}", all[i].name, sp);
      const Outcome one = run_spread(all[i].job, {.tp = 2, .sp = sp}, {.out = alone});
      ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
      const Spread over{.fsdp = sp ? 2 : 1,
                        .zero = 3,
                        .pp = sp ? 2 : 3,
                        .schedule = spec::PipelineSchedule::kZbH1,
                        .tp = 2,
                        .sp = sp};
      SCOPED_TRACE(fmt::format("{} on {}", all[i].name, over.text()));
      expect_trains_as(alone, one, all[i].job, over, fmt::format("{}-{}", all[i].name, sp));
    }
  }
}

// Ranks that share sequences add attention up in another order than one rank, so they are compared
// within a tolerance: gradients of the first step, and losses and weights after several. With the
// same `cp` and `tp` everything else may be spread in any way, and the bits stay the same.
TEST_F(RanksTest, RanksThatShareSequencesTrainWhatOneRankTrainsUpToRounding) {
  const std::vector<Spread> spreads = {
      {.cp = 2},
      {.cp = 3},
      {.fsdp = 2, .zero = 3, .cp = 2},
      {.dp = 2, .fsdp = 2, .zero = 1, .cp = 2},
      {.pp = 2, .cp = 2},
      {.fsdp = 2, .zero = 3, .unit = spec::ShardUnit::kModule, .pp = 2, .cp = 2},
      {.pp = 2, .schedule = spec::PipelineSchedule::kInterleaved, .chunks = 2, .cp = 3},
      {.tp = 2, .sp = true, .cp = 2},
      {.fsdp = 2, .zero = 3, .pp = 2, .tp = 2, .sp = true, .cp = 2},
      {.dp = 2, .tp = 2, .cp = 3},
      {.pp = 2, .schedule = spec::PipelineSchedule::kZbH1, .cp = 2},
  };
  use_windows_of(24);
  for (Kind kind : kinds()) {
    kind.job.batch.sequence = 24;
    kind.job.train.epsilon = 1e-6;
    const std::string alone = fmt::format("{}-alone", kind.name);
    const Outcome one = run_spread(kind.job, {}, {.out = alone, .stop_after = 1});
    ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
    const Outcome rest = run_spread(kind.job, {}, {.out = alone, .resume = true});
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> first;  // run with this cp, tp
    for (const Spread& drawn : spreads) {
      const auto number = &drawn - spreads.data();
      // All of them for one kind, and some for the others.
      if (kind.name != std::string("llama") && number % 3 != 1) continue;
      Spread over = drawn;
      if (kind.job.train.optimizer == spec::Optimizer::kMuon) over.zero = 2;
      if (kind.job.train.optimizer == spec::Optimizer::kMuon && over.tp > 1) continue;
      constexpr spec::Recompute kPolicies[] = {spec::Recompute::kNone, spec::Recompute::kCheap,
                                               spec::Recompute::kFfn, spec::Recompute::kFull};
      kind.job.train.recompute = kPolicies[number % 4];
      SCOPED_TRACE(fmt::format("{} on {}", kind.name, over.text()));
      const std::string out = fmt::format("{}-{}", kind.name, number);
      std::vector<ExecutedLog> logs(static_cast<std::size_t>(over.ranks()));
      const Outcome begun = run_spread(
          kind.job, over, {.out = out, .stop_after = 1},
          [&](Rank& rank) { rank.log = &logs[static_cast<std::size_t>(rank.ranks.rank())]; });
      ASSERT_TRUE(begun.result.has_value()) << begun.result.error().line();
      expect_close(out, alone, 1, "optimizer", 5e-6);
      const Outcome ended = run_spread(kind.job, over, {.out = out, .resume = true});
      ASSERT_TRUE(ended.result.has_value()) << ended.result.error().line();
      expect_close(out, alone, 6, "weights", 1e-5);
      for (const RecordingReporter& reporter : ended.reporters) {
        ASSERT_EQ(reporter.reports.size(), 5U);
        for (std::size_t i = 0; i < 5; ++i) {
          const StepReport& found = reporter.reports[i];
          const StepReport& expected = rest.reporters[0].reports[i];
          EXPECT_NEAR(found.loss / expected.loss, 1, 1e-5);
          EXPECT_NEAR(found.gradient_norm / expected.gradient_norm, 1, 1e-4);
          EXPECT_EQ(found.tokens, expected.tokens);
          EXPECT_EQ(found.loss, ended.reporters[0].reports[i].loss);
        }
      }
      if (const auto [same, is_new] = first.try_emplace({over.cp, over.tp}, out); !is_new) {
        expect_same(out, same->second, 6);
      }
    }
  }
}

TEST_F(RanksTest, RanksThatShareSequencesRepeatAndResumeAnywhere) {
  use_windows_of(24);
  spec::JobSpec job = kinds()[0].job;
  job.batch.sequence = 24;
  job.train.validate_every = 3;
  job.train.validate_tokens = 300;
  const Spread shared{.fsdp = 2, .zero = 3, .cp = 2};
  for (const char* out : {"once", "twice"}) {
    ASSERT_TRUE(run_spread(job, shared, {.out = out}).result.has_value());
  }
  expect_same("once", "twice", 6);
  const auto run_on = [&](const std::string& out, const Spread& over, bool resume,
                          std::optional<std::int64_t> until) {
    const Outcome outcome = run_spread(
        job, over, {.out = out, .resume = resume, .stop_after = until, .validation = set_.get()});
    ASSERT_TRUE(outcome.result.has_value()) << outcome.result.error().line();
    const RecordingReporter& first = outcome.reporters.front();
    for (const RecordingReporter& reporter : outcome.reporters) {
      ASSERT_EQ(reporter.validations.size(), first.validations.size());
      for (std::size_t i = 0; i < first.validations.size(); ++i) {
        EXPECT_EQ(reporter.validations[i].loss, first.validations[i].loss);
        validated_[out] = first.validations[i].loss;
      }
    }
  };
  run_on("alone", {}, false, std::nullopt);
  // Shared by two, then by nobody, then by three in two stages.
  run_on("moved", shared, false, 2);
  run_on("moved", {}, true, 4);
  run_on("moved", {.pp = 2, .cp = 3}, true, std::nullopt);
  expect_close("moved", "alone", 6, "weights", 2e-5);
  EXPECT_NEAR(validated_["moved"] / validated_["alone"], 1, 1e-5);
}

TEST_F(RanksTest, RepeatToTheLastBitInAnyOrderOfArrival) {
  std::vector<std::string> first;
  for (const int late : {0, 1, 2}) {
    const std::string out = fmt::format("late-{}", late);
    Outcome outcome = run_ranks(kinds()[0].job, 3, {.out = out}, [&](Rank& rank) {
      if (rank.ranks.rank() != late) return;
      rank.reporter.on_step = [](const StepReport&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      };
    });
    ASSERT_TRUE(outcome.result.has_value());
    if (first.empty()) first = contents(out, 6);
    EXPECT_EQ(contents(out, 6), first);
  }
}

TEST_F(RanksTest, ExecuteTheirListsOpForOp) {
  for (const Kind& kind : kinds()) {
    std::vector<ExecutedLog> logs(3);
    const Outcome outcome = run_ranks(
        kind.job, 3, {.out = kind.name, .stop_after = 2},
        [&](Rank& rank) { rank.log = &logs[static_cast<std::size_t>(rank.ranks.rank())]; });
    EXPECT_TRUE(outcome.result.has_value());
    for (const ExecutedLog& log : logs) EXPECT_FALSE(log.empty());
  }
}

TEST_F(RanksTest, ResumedRunsEndAsIfNeverStopped) {
  const spec::JobSpec job = kinds()[0].job;
  ASSERT_TRUE(run_ranks(job, 3, {.out = "whole"}).result.has_value());
  ASSERT_TRUE(run_ranks(job, 3, {.out = "parts", .stop_after = 2}).result.has_value());
  const Outcome resumed = run_ranks(job, 3, {.out = "parts", .resume = true});
  ASSERT_TRUE(resumed.result.has_value()) << resumed.result.error().line();
  for (const RecordingReporter& reporter : resumed.reporters) EXPECT_EQ(reporter.first_step, 3);
  EXPECT_EQ(contents("parts", 6), contents("whole", 6));
}

TEST_F(RanksTest, AStoppedRunResumesOnOtherRanks) {
  for (const Kind& kind : kinds()) {
    const std::string whole = fmt::format("{}-whole", kind.name);
    ASSERT_TRUE(run_ranks(kind.job, 1, {.out = whole}).result.has_value());
    const std::string out = fmt::format("{}-moved", kind.name);
    int step = 0;
    for (const int ranks : {2, 1, 3, 4}) {
      const Outcome moved =
          run_ranks(kind.job, ranks, {.out = out, .resume = step > 0, .stop_after = ++step});
      ASSERT_TRUE(moved.result.has_value()) << moved.result.error().line();
    }
    ASSERT_TRUE(run_ranks(kind.job, 2, {.out = out, .resume = true}).result.has_value());
    EXPECT_EQ(contents(out, 6), contents(whole, 6)) << kind.name;
  }
}

// Saved by ranks in one way, restored in another, saved again, …: the same as one rank's in the
// end.
TEST_F(RanksTest, AStoppedRunResumesInAnyOtherLayout) {
  const std::vector<Spread> ways = {{.fsdp = 2, .zero = 3, .pp = 2},
                                    {.dp = 2, .fsdp = 2, .zero = 1},
                                    {.pp = 3},
                                    {.fsdp = 6, .zero = 3, .unit = spec::ShardUnit::kModule},
                                    {.pp = 2, .schedule = spec::PipelineSchedule::kZbH1},
                                    {.fsdp = 1}};
  const spec::JobSpec job = kinds()[0].job;
  ASSERT_TRUE(run_ranks(job, 1, {.out = "one"}).result.has_value());
  std::int64_t step = 0;
  for (const Spread& way : ways) {
    SCOPED_TRACE(way.text());
    const Outcome outcome =
        run_spread(job, way, {.out = "moved", .resume = step > 0, .stop_after = step + 1});
    ASSERT_TRUE(outcome.result.has_value()) << outcome.result.error().line();
    const auto from = checkpoint::Checkpoint::open(saved("moved", ++step));
    ASSERT_TRUE(from.has_value());
    EXPECT_EQ(from->manifest().ranks, way.ranks());
  }
  expect_same("moved", "one", 6);
  EXPECT_EQ(run_spread(job, ways[3], {.out = "sharded"}).result.has_value(), true);
  EXPECT_EQ(read_independently("sharded", 6), read_independently("one", 6));
  EXPECT_EQ(read_independently("moved", 6), read_independently("one", 6));
}

TEST_F(RanksTest, ModelsAreExportedFromShardsAsFromOne) {
  const spec::JobSpec job = kinds()[0].job;
  const auto exported = [&](const std::string& out, const Spread& over) {
    EXPECT_TRUE(run_spread(job, over, {.out = out, .stop_after = 1}).result.has_value());
    const auto from = checkpoint::Checkpoint::open(saved(out, 1));
    EXPECT_TRUE(from.has_value());
    EXPECT_TRUE(export_hf(*from, dir_.path() / (out + "-hf")).has_value());
    const auto text = base::read_file(dir_.path() / (out + "-hf") / "model.safetensors",
                                      base::Bytes(std::int64_t{1} << 30U));
    EXPECT_TRUE(text.has_value());
    return text.value_or("");
  };
  const std::string one = exported("one", {});
  EXPECT_GT(one.size(), 1000U);
  EXPECT_TRUE(exported("many", {.fsdp = 3, .zero = 3, .pp = 2}) == one);
}

// The newest checkpoint lacks a shard: the one before it is used, and the run ends the same.
TEST_F(RanksTest, ADamagedShardIsReportedAndTheCheckpointBeforeItUsed) {
  spec::JobSpec job = kinds()[0].job;
  ASSERT_TRUE(run_ranks(job, 3, {.out = "whole"}).result.has_value());
  job.checkpoint.every = 2;
  job.checkpoint.keep = 10;
  ASSERT_TRUE(run_ranks(job, 3, {.out = "hurt", .stop_after = 4}).result.has_value());
  const auto manifest = checkpoint::verify(saved("hurt", 4));
  ASSERT_TRUE(manifest.has_value());
  const std::string file = manifest->files.back().name;
  ASSERT_TRUE(fs::remove(saved("hurt", 4) / file));
  const Outcome resumed = run_ranks(job, 2, {.out = "hurt", .resume = true});
  ASSERT_TRUE(resumed.result.has_value()) << resumed.result.error().line();
  const RecordingReporter& first = resumed.reporters.front();
  EXPECT_EQ(first.first_step, 3);
  ASSERT_FALSE(first.notes.empty());
  EXPECT_NE(first.notes[0].find(file + ": is missing"), std::string::npos) << first.notes[0];
  expect_same("hurt", "whole", 6);
}

// In the middle of a run, training goes on; the last checkpoint must be written.
TEST_F(RanksTest, ACheckpointThatCannotBeWrittenIsReportedAndTrainingGoesOn) {
  spec::JobSpec job = kinds()[0].job;
  job.checkpoint.every = 2;
  const fs::path root = dir_.path() / "gone/checkpoints";
  const Outcome outcome = run_ranks(job, 3, {.out = "gone"}, [&](Rank& rank) {
    if (rank.ranks.rank() != 0) return;
    rank.reporter.on_step = [&](const StepReport& report) {
      std::error_code ignored;
      if (report.step == 2) fs::rename(root, dir_.path() / "aside", ignored);
      if (report.step == 4) fs::rename(dir_.path() / "aside", root, ignored);
    };
  });
  ASSERT_TRUE(outcome.result.has_value()) << outcome.result.error().line();
  const RecordingReporter& first = outcome.reporters.front();
  ASSERT_EQ(first.notes.size(), 1U);
  EXPECT_NE(first.notes[0].find("a checkpoint was not written: "), std::string::npos);
  EXPECT_EQ(first.saves, 2);
  EXPECT_FALSE(fs::exists(saved("gone", 2)));
  EXPECT_TRUE(checkpoint::verify(saved("gone", 4)).has_value());
  EXPECT_TRUE(checkpoint::verify(saved("gone", 6)).has_value());
}

TEST_F(RanksTest, OneRanksSignalStopsAllAfterTheSameStep) {
  std::atomic<bool> stop = false;
  const Outcome outcome = run_ranks(kinds()[0].job, 3, {.out = "signal"}, [&](Rank& rank) {
    if (rank.ranks.rank() != 1) return;
    rank.options.stop = &stop;
    rank.reporter.on_step = [&](const StepReport& report) { stop = report.step == 2; };
  });
  ASSERT_TRUE(outcome.result.has_value());
  for (const RecordingReporter& reporter : outcome.reporters)
    EXPECT_EQ(reporter.reports.size(), 2U);
  EXPECT_TRUE(checkpoint::verify(saved("signal", 2)).has_value());
}

TEST_F(RanksTest, ValidateEqually) {
  spec::JobSpec job = kinds()[0].job;
  const Outcome plain = run_ranks(job, 2, {.out = "plain"});
  job.train.validate_every = 2;
  job.train.validate_tokens = 300;
  const Outcome outcome = run_ranks(job, 2, {.out = "validated", .validation = set_.get()});
  ASSERT_TRUE(outcome.result.has_value());
  const RecordingReporter& first = outcome.reporters.front();
  ASSERT_FALSE(first.validations.empty());
  for (const RecordingReporter& reporter : outcome.reporters) {
    ASSERT_EQ(reporter.validations.size(), first.validations.size());
    EXPECT_EQ(reporter.validations.back().loss, first.validations.back().loss);
    EXPECT_EQ(reporter.reports.back().loss, plain.reporters.front().reports.back().loss);
  }
}

// The forward pass of one micro-batch through all stages, also where a step has no other.
TEST_F(RanksTest, StagesOfAPipelineValidateAsOneRank) {
  spec::JobSpec job = kinds()[0].job;
  job.train.validate_every = 2;
  job.train.validate_tokens = 300;
  for (const std::int64_t micro_batch : {kSequences, std::int64_t{2}}) {
    const Outcome one =
        run_spread(job, {.micro_batch = micro_batch},
                   {.out = fmt::format("one-{}", micro_batch), .validation = set_.get()});
    ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
    ASSERT_FALSE(one.reporters[0].validations.empty());
    for (Spread over : std::vector<Spread>{
             {.pp = 2},
             {.pp = 4, .schedule = spec::PipelineSchedule::kGpipe},
             {.pp = 3, .schedule = spec::PipelineSchedule::kZbH1},
             {.pp = 2, .schedule = spec::PipelineSchedule::kInterleaved, .chunks = 2},
         }) {
      if (over.chunks > 1 && micro_batch == kSequences) continue;  // which needs two
      over.micro_batch = micro_batch;
      SCOPED_TRACE(fmt::format("{} micro-batches of {}", over.text(), micro_batch));
      const Outcome many = run_spread(
          job, over,
          {.out = fmt::format("{} {}", over.text(), micro_batch), .validation = set_.get()});
      ASSERT_TRUE(many.result.has_value()) << many.result.error().line();
      for (const RecordingReporter& reporter : many.reporters) {
        ASSERT_EQ(reporter.validations.size(), one.reporters[0].validations.size());
        for (std::size_t i = 0; i < reporter.validations.size(); ++i) {
          EXPECT_EQ(reporter.validations[i].loss, one.reporters[0].validations[i].loss);
        }
        EXPECT_EQ(reporter.reports.back().loss, one.reporters[0].reports.back().loss);
      }
    }
  }
}

TEST_F(RanksTest, StepsThatAreNotFiniteAreLeftOutOnAll) {
  spec::JobSpec job = kinds()[0].job;
  job.train.learning_rate = 1e30;
  job.train.schedule = spec::Schedule::kConstant;
  job.train.warmup_steps = 0;
  const Outcome outcome = run_ranks(job, 2, {.out = "skip"});
  ASSERT_TRUE(outcome.result.has_value());
  for (const RecordingReporter& reporter : outcome.reporters) {
    EXPECT_FALSE(reporter.reports.front().skipped);
    EXPECT_TRUE(reporter.reports.back().skipped);
  }
}

TEST_F(RanksTest, ARankThatCannotReadEndsAllWithItsReason) {
  const Outcome outcome = run_ranks(kinds()[0].job, 3, {.out = "broken"}, [](Rank& rank) {
    if (rank.ranks.rank() == 2) rank.vocabulary = 10;
  });
  ASSERT_FALSE(outcome.result.has_value());
  EXPECT_NE(outcome.result.error().line().find("text.tokens"), std::string::npos)
      << outcome.result.error().line();
}

}  // namespace
}  // namespace assay::train
