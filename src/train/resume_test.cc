// State sharded over ranks: initial weights do not depend on the number of ranks, and M ranks
// restore bit for bit what N ranks saved.
#include "train/resume.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "base/testing/temp_dir.h"
#include "comm/local.h"
#include "train/state.h"

namespace assay::train {
namespace {

// A backend with memory and no arithmetic, in any precision.
class MemoryBackend : public Backend {
 public:
  base::Result<std::int64_t> available_bytes() override { return 0; }
  base::Result<std::int64_t> extra_bytes(const step::Program&) override { return 0; }
  base::Result<void> prepare(const step::Program& program, const step::MemoryPlan&) override {
    for (const step::Buffer& buffer : program.buffers) {
      types_.push_back(buffer.type);
      memory_.emplace_back(static_cast<std::size_t>(buffer.bytes()));
    }
    return {};
  }
  base::Result<void> write(const step::View& to, std::span<const std::byte> from) override {
    EXPECT_EQ(from.size(), bytes_in(to));
    std::memcpy(place(to), from.data(), from.size());
    return {};
  }
  base::Result<void> read(const step::View& from, std::span<std::byte> to) override {
    EXPECT_EQ(to.size(), bytes_in(from));
    std::memcpy(to.data(), place(from), to.size());
    return {};
  }
  void begin_step(const StepSettings&) override {}
  void set_batch(const step::Op&, std::span<const std::int32_t>,
                 std::span<const std::int32_t>) override {}
  base::Result<void> execute(const step::Op&) override { return {}; }
  base::Result<Scalars> finish_step() override { return Scalars{}; }
  [[nodiscard]] std::string description() const override { return "memory"; }

 private:
  [[nodiscard]] std::size_t size_in(const step::View& view) const {
    return static_cast<std::size_t>(step::bytes_of(types_[static_cast<std::size_t>(view.buffer)]));
  }
  [[nodiscard]] std::size_t bytes_in(const step::View& view) const {
    EXPECT_EQ(view.stride, view.cols);  // parameters and their state have no gaps
    return static_cast<std::size_t>(view.elements()) * size_in(view);
  }
  std::byte* place(const step::View& view) {
    std::vector<std::byte>& buffer = memory_[static_cast<std::size_t>(view.buffer)];
    const std::size_t at = static_cast<std::size_t>(view.offset) * size_in(view);
    EXPECT_LE(at + bytes_in(view), buffer.size());
    return buffer.data() + at;
  }

  std::vector<step::Dtype> types_;
  std::vector<std::vector<std::byte>> memory_;
};

spec::JobSpec job_of(spec::Precision precision, spec::Optimizer optimizer) {
  spec::JobSpec job;
  job.model = {.vocab = 37,
               .dim = 24,
               .layers = 2,
               .heads = 4,
               .kv_heads = 2,
               .head_dim = 6,
               .ffn = 40,
               .context = 8};
  job.batch = {.sequence = 8, .micro_batch = 1, .accumulate = 1};
  job.layout.dp = 1;
  job.train.precision = precision;
  job.train.optimizer = optimizer;
  return job;
}

struct Held {
  step::Program program;
  MemoryBackend backend;
};

base::Result<void> prepare(Held& held, const spec::JobSpec& job, comm::Communicator& ranks) {
  step::Choices choices = step::choices_of(job);
  choices.recompute = spec::Recompute::kNone;
  // Parameters divided, with two replicas where that comes out even; Muon keeps them whole.
  const bool muon = job.train.optimizer == spec::Optimizer::kMuon;
  const std::int64_t replicas = ranks.ranks() % 2 == 0 ? 2 : 1;
  ASSAY_TRY(
      choices.layout,
      step::layout_of({.dp = replicas, .fsdp = ranks.ranks() / replicas, .zero = muon ? 2 : 3},
                      ranks.rank()));
  ASSAY_TRY(held.program, step::build(job.model, choices));
  return held.backend.prepare(held.program, {});
}

using Tensors = std::map<std::string, std::vector<std::byte>>;

Tensors tensors_of(const checkpoint::Snapshot& snapshot) {
  Tensors tensors;
  for (const checkpoint::Part& part : snapshot.parts) {
    for (const checkpoint::Tensor& tensor : part.tensors) {
      tensors[part.name + "/" + tensor.info.name].assign(tensor.data.begin(), tensor.data.end());
    }
  }
  return tensors;
}

// What rank 0 would save after `fill` has set every rank's state.
Tensors saved_by(const spec::JobSpec& job, int ranks,
                 const std::function<base::Result<void>(Held&)>& fill,
                 checkpoint::Snapshot* keep = nullptr) {
  Tensors tensors;
  const auto done = comm::run_local(ranks, [&](comm::Communicator& c) -> base::Result<void> {
    Held held;
    ASSAY_TRY_VOID(prepare(held, job, c));
    ASSAY_TRY_VOID(fill(held));
    ASSAY_TRY(checkpoint::Snapshot snapshot,
              take_snapshot(held.backend, c, held.program, job, {.step = 5, .cursor = 9}));
    if (c.rank() != 0) {
      EXPECT_TRUE(tensors_of(snapshot).empty());
      return {};
    }
    tensors = tensors_of(snapshot);
    if (keep != nullptr) *keep = std::move(snapshot);
    return {};
  });
  EXPECT_TRUE(done.has_value());
  return tensors;
}

// Distinct bytes for every element of every tensor, on whichever rank it is.
base::Result<void> fill_at_random(Held& held) {
  for (const StateKind kind : {StateKind::kWeights, StateKind::kOptimizer}) {
    for (const StateTensor& tensor : state_tensors(held.program, kind)) {
      std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(tensor.name)));
      std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      const step::Range own = bytes_of(tensor, tensor.own);
      if (own.count == 0) continue;
      ASSAY_TRY_VOID(held.backend.write(
          tensor.view, std::span(bytes).subspan(static_cast<std::size_t>(own.first),
                                                static_cast<std::size_t>(own.count))));
    }
  }
  return {};
}

class ShardedState : public ::testing::TestWithParam<std::pair<spec::Precision, spec::Optimizer>> {
 protected:
  spec::JobSpec job_ = job_of(GetParam().first, GetParam().second);
};

TEST_P(ShardedState, BeginsTheSameOnAnyNumberOfRanks) {
  const auto begin = [](Held& held) { return initialise(held.backend, held.program, 3); };
  const Tensors expected = saved_by(job_, 1, begin);
  EXPECT_GT(expected.size(), 20U);
  for (int ranks = 2; ranks <= 8; ++ranks) EXPECT_EQ(saved_by(job_, ranks, begin), expected);
}

TEST_P(ShardedState, IsRestoredOnOtherRanksBitForBit) {
  const base::testing::TempDir dir;
  const Tensors expected = saved_by(job_, 1, fill_at_random);
  for (const int before : {1, 2, 3, 5}) {
    checkpoint::Snapshot snapshot;
    EXPECT_EQ(saved_by(job_, before, fill_at_random, &snapshot), expected);
    const auto written = checkpoint::write_checkpoint(dir.path(), snapshot);
    ASSERT_TRUE(written.has_value());
    const auto from = checkpoint::Checkpoint::open(written->folder);
    ASSERT_TRUE(from.has_value());
    for (const int after : {1, 2, 3, 7}) {
      EXPECT_EQ(saved_by(job_, after,
                         [&](Held& held) -> base::Result<void> {
                           ASSAY_TRY(const Position position,
                                     restore(held.backend, held.program, job_, *from));
                           EXPECT_EQ(position.step, 5);
                           EXPECT_EQ(position.cursor, 9U);
                           return {};
                         }),
                expected)
          << before << " to " << after;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Precisions, ShardedState,
    ::testing::Values(std::pair{spec::Precision::kFp32, spec::Optimizer::kAdamw},
                      std::pair{spec::Precision::kBf16, spec::Optimizer::kAdamw},
                      std::pair{spec::Precision::kBf16, spec::Optimizer::kMuon}));

}  // namespace
}  // namespace assay::train
