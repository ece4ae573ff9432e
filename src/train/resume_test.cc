// State sharded over ranks: initial weights do not depend on the number of ranks, and M ranks
// restore bit for bit what N ranks saved.
#include "train/resume.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <random>

#include "base/testing/temp_dir.h"
#include "comm/local.h"
#include "train/checkpoint/diff.h"
#include "train/checkpoint/shared_write.h"
#include "train/state.h"
#include "train/testing/memory_backend.h"
#include "train/testing/state_pieces.h"

namespace assay::train {
namespace {

using testing::MemoryBackend;

spec::JobSpec job_of(spec::Precision precision, spec::Optimizer optimizer) {
  spec::JobSpec job;
  job.model = {.vocab = 37,
               .dim = 24,
               .layers = 3,
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

base::Result<void> prepare(Held& held, const spec::JobSpec& job, const spec::LayoutSpec& layout,
                           comm::Communicator& ranks) {
  step::Choices choices = step::choices_of(job);
  choices.recompute = spec::Recompute::kNone;
  ASSAY_TRY(choices.layout, step::layout_of(layout, ranks.rank()));
  ASSAY_TRY(held.program, step::build(job.model, choices));
  return held.backend.prepare(held.program, {});
}

using Tensors = std::map<std::string, std::vector<std::byte>>;

// Adds what one rank saves to what the others save. No element is saved twice.
void add_tensors(const checkpoint::Snapshot& snapshot, Tensors& tensors,
                 std::map<std::string, std::size_t>& added) {
  for (const checkpoint::SnapshotPart& part : snapshot.parts) {
    for (const checkpoint::Tensor& tensor : part.tensors) {
      const std::string name = part.name + "/" + tensor.info.name;
      std::vector<std::byte>& bytes = tensors[name];
      bytes.resize(static_cast<std::size_t>(*tensor.info.bytes()));
      const checkpoint::ElementRange piece =
          tensor.elements.value_or(checkpoint::ElementRange{0, tensor.info.elements()});
      const auto size = static_cast<std::size_t>(checkpoint::dtype_bytes(tensor.info.dtype));
      for (std::int64_t i = 0; i < piece.count; ++i) {
        std::memcpy(bytes.data() + static_cast<std::size_t>(testing::element_of(piece, i)) * size,
                    tensor.data.data() + static_cast<std::size_t>(i) * size, size);
      }
      added[name] += tensor.data.size();
    }
  }
}

base::Result<void> write(const std::filesystem::path& root, comm::Communicator& ranks,
                         checkpoint::Snapshot& snapshot) {
  if (ranks.ranks() == 1) {
    ASSAY_TRY_VOID(checkpoint::write_checkpoint(root, snapshot));
    return {};
  }
  ASSAY_TRY(AgreedShare agreed, agree_on_share(ranks, root, snapshot.state.step));
  EXPECT_TRUE(agreed.share.has_value());
  snapshot.share = std::move(agreed.share);
  ASSAY_TRY_VOID(checkpoint::write_shared(root, snapshot));
  return {};
}

// What the ranks of a layout save together after `fill` has set their state; also writes a
// checkpoint if a folder is given.
Tensors saved_by(const spec::JobSpec& job, const spec::LayoutSpec& layout,
                 const std::function<base::Result<void>(Held&)>& fill,
                 const std::filesystem::path& root = {}) {
  Tensors tensors;
  std::map<std::string, std::size_t> added;
  std::mutex mutex;
  const auto ranks = static_cast<int>(layout.dp * layout.inner_ranks());
  const auto done = comm::run_local(ranks, [&](comm::Communicator& c) -> base::Result<void> {
    Held held;
    ASSAY_TRY_VOID(prepare(held, job, layout, c));
    ASSAY_TRY_VOID(fill(held));
    ASSAY_TRY(checkpoint::Snapshot snapshot,
              take_snapshot(held.backend, held.program, job, {.step = 5, .cursor = 9}));
    {
      const std::lock_guard lock(mutex);
      add_tensors(snapshot, tensors, added);
    }
    return root.empty() ? base::Result<void>() : write(root, c, snapshot);
  });
  EXPECT_TRUE(done.has_value()) << done.error().line();
  for (const auto& [name, bytes] : tensors) EXPECT_EQ(added[name], bytes.size()) << name;
  return tensors;
}

// Distinct bytes for every element of every tensor, on whichever rank it is.
base::Result<void> fill_at_random(Held& held) {
  for (const StateKind kind : {StateKind::kWeights, StateKind::kOptimizer}) {
    for (const StateTensor& tensor : state_tensors(held.program, kind)) {
      std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(tensor.name)));
      std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      if (tensor.own.count == 0) continue;
      ASSAY_TRY_VOID(held.backend.write(tensor.view, testing::take_own(tensor, bytes)));
    }
  }
  return {};
}

TEST(Algorithms, OfAllRanksAreInACheckpoint) {
  const std::vector<std::string> own = {"card\nb\na\n", "card\nc\na\n", "other card\nd\n", ""};
  const auto done = comm::run_local(4, [&](comm::Communicator& c) -> base::Result<void> {
    ASSAY_TRY(const std::string all, all_algorithms(c, own[static_cast<std::size_t>(c.rank())]));
    EXPECT_EQ(all, "card\na\nb\nc\n") << c.rank();
    ASSAY_TRY(const std::string none, all_algorithms(c, ""));
    EXPECT_EQ(none, "");
    return {};
  });
  EXPECT_TRUE(done.has_value()) << done.error().line();
}

struct StateKept {
  spec::Precision precision = spec::Precision::kBf16;
  spec::Optimizer optimizer = spec::Optimizer::kAdamw;
  std::int64_t experts = 0;
};

spec::JobSpec job_of(const StateKept& kept) {
  spec::JobSpec job = job_of(kept.precision, kept.optimizer);
  job.model.experts = kept.experts;
  job.model.experts_per_token = kept.experts > 0 ? 1 : 0;
  return job;
}

class ShardedState : public ::testing::TestWithParam<StateKept> {
 protected:
  spec::JobSpec job_ = job_of(GetParam());
};

// Sharded parameters, with two replicas if that divides evenly; with Muon they are not sharded.
spec::LayoutSpec divided(const spec::JobSpec& job, std::int64_t ranks) {
  const bool muon = job.train.optimizer == spec::Optimizer::kMuon;
  const std::int64_t replicas = ranks % 2 == 0 ? 2 : 1;
  return {.dp = replicas, .fsdp = ranks / replicas, .zero = muon ? 2 : 3};
}

spec::LayoutSpec drawn(const spec::JobSpec& job) {
  spec::LayoutSpec layout{.dp = *rc::gen::inRange<std::int64_t>(1, 3),
                          .fsdp = *rc::gen::inRange<std::int64_t>(1, 4),
                          .pp = *rc::gen::inRange<std::int64_t>(1, 4),
                          .cp = *rc::gen::element<std::int64_t>(1, 1, 2)};
  const bool muon = job.train.optimizer == spec::Optimizer::kMuon;
  layout.zero = *rc::gen::inRange<std::int64_t>(1, muon ? 3 : 4);
  if (!muon) layout.tp = *rc::gen::inRange<std::int64_t>(1, 3);
  layout.sequence_parallel = layout.tp > 1 && *rc::gen::arbitrary<bool>();
  layout.unit = *rc::gen::element(spec::ShardUnit::kBlock, spec::ShardUnit::kModule);
  if (job.model.is_moe()) {
    layout.cp = 1;
    layout.ep = *rc::gen::element<std::int64_t>(2, 4);
    layout.fsdp = std::min<std::int64_t>(layout.fsdp, 2);  // not too many ranks
    layout.pp = 1;
  }
  return layout;
}

TEST_P(ShardedState, BeginsTheSameOnAnyNumberOfRanks) {
  const auto begin = [](Held& held) { return initialise(held.backend, held.program, 3); };
  const Tensors expected = saved_by(job_, {.dp = 1}, begin);
  EXPECT_GT(expected.size(), 20U);
  for (int ranks = 2; ranks <= 8; ++ranks) {
    EXPECT_EQ(saved_by(job_, divided(job_, ranks), begin), expected);
  }
  if (job_.train.optimizer == spec::Optimizer::kMuon) return;
  EXPECT_EQ(saved_by(job_, {.dp = 1, .fsdp = 3, .tp = 2}, begin), expected);
}

// The backend is asked for the same elements that the host would write: the weights, and the low
// halves, of which a rank may have fewer.
TEST_P(ShardedState, BeginsTheSameWhereTheDeviceDraws) {
  if (job_.train.precision != spec::Precision::kBf16) GTEST_SKIP() << "devices draw two halves";
  const auto by_host = [](Held& held) { return initialise(held.backend, held.program, 3); };
  const auto by_device = [&](Held& held) {
    held.backend.draws = true;
    return by_host(held);
  };
  const Tensors expected = saved_by(job_, {.dp = 1}, by_host);
  EXPECT_EQ(saved_by(job_, {.dp = 1}, by_device), expected);
  for (int ranks = 2; ranks <= 6; ++ranks) {
    EXPECT_EQ(saved_by(job_, divided(job_, ranks), by_device), expected);
  }
  EXPECT_EQ(saved_by(job_, {.dp = 2, .fsdp = 2, .zero = 1}, by_device), expected);
  if (job_.train.optimizer == spec::Optimizer::kMuon) return;
  EXPECT_EQ(saved_by(job_, {.dp = 1, .fsdp = 3, .tp = 2}, by_device), expected);
}

// A device may still hold state of a checkpoint that turned out to be damaged.
TEST_P(ShardedState, ImportedWeightsBeginWithAnOptimizerThatHasSeenNothing) {
  const base::testing::MemoryDir dir;
  checkpoint::Snapshot imported;
  std::vector<std::byte> bytes(std::size_t{1} << 16U);
  std::mt19937 random(1);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const auto describe = [&](Held& held) -> base::Result<void> {
    imported.state.layout = layout_text(held.program);
    imported.parts = {{.name = "weights", .tensors = {}}};
    for (const StateTensor& tensor : state_tensors(held.program, StateKind::kWeights)) {
      imported.parts[0].tensors.push_back(
          {.info = file_info(tensor),
           .data = std::span(bytes).first(static_cast<std::size_t>(tensor.bytes()))});
    }
    return {};
  };
  saved_by(job_, {.dp = 1}, describe);
  ASSERT_TRUE(checkpoint::write_checkpoint(dir.path(), imported).has_value());
  const auto from = checkpoint::Checkpoint::open(dir.path() / "step-0");
  ASSERT_TRUE(from.has_value());
  const auto import = [&](Held& held) -> base::Result<void> {
    ASSAY_TRY(const Position position, restore(held.backend, held.program, job_, *from));
    EXPECT_EQ(position.step, 0);
    return {};
  };
  const auto import_later = [&](Held& held) -> base::Result<void> {
    ASSAY_TRY_VOID(fill_at_random(held));
    return import(held);
  };
  const Tensors expected = saved_by(job_, {.dp = 1}, import);
  EXPECT_EQ(saved_by(job_, {.dp = 1}, import_later), expected);
  EXPECT_EQ(saved_by(job_, divided(job_, 4), import_later), expected);
}

// Saved in one layout, restored in another and saved again: bit for bit the same, in memory and by
// comparing the two checkpoints.
TEST_P(ShardedState, IsRestoredInAnyOtherLayoutBitForBit) {
  const Tensors expected = saved_by(job_, {.dp = 1}, fill_at_random);
  rc::check([&] {
    const base::testing::MemoryDir before;
    const base::testing::MemoryDir after;
    RC_ASSERT(saved_by(job_, drawn(job_), fill_at_random, before.path()) == expected);
    const auto from = checkpoint::Checkpoint::open(before.path() / "step-5");
    RC_ASSERT(from.has_value());
    const auto resume = [&](Held& held) -> base::Result<void> {
      ASSAY_TRY(const Position position, restore(held.backend, held.program, job_, *from));
      EXPECT_EQ(position.step, 5);
      EXPECT_EQ(position.cursor, 9U);
      return {};
    };
    RC_ASSERT(saved_by(job_, drawn(job_), resume, after.path()) == expected);
    const auto to = checkpoint::Checkpoint::open(after.path() / "step-5");
    RC_ASSERT(to.has_value());
    const auto found = checkpoint::diff(*from, *to);
    RC_ASSERT(found.has_value());
    RC_ASSERT(found->equal());
    RC_ASSERT(found->compared_tensors == static_cast<std::int64_t>(expected.size()));
  });
}

// Every rank saves about as much as the others, whatever it holds.
TEST_P(ShardedState, IsSavedInEqualParts) {
  const std::int64_t cp = job_.model.is_moe() ? 1 : 2;
  for (const spec::LayoutSpec& layout : {spec::LayoutSpec{.dp = 2, .fsdp = 3, .zero = 1},
                                         {.dp = 2, .fsdp = 3, .zero = 2},
                                         {.dp = 1, .fsdp = 3, .zero = 2, .cp = cp, .ep = 2 / cp}}) {
    std::vector<std::int64_t> bytes(6);
    const auto done = comm::run_local(6, [&](comm::Communicator& c) -> base::Result<void> {
      Held held;
      ASSAY_TRY_VOID(prepare(held, job_, layout, c));
      bytes[static_cast<std::size_t>(c.rank())] = saved_bytes(held.program);
      return {};
    });
    ASSERT_TRUE(done.has_value());
    const std::int64_t all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
    const bool whole_matrices = job_.train.optimizer == spec::Optimizer::kMuon;
    for (const std::int64_t own : bytes) EXPECT_LT(own, all / 6 * (whole_matrices ? 3 : 2));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Precisions, ShardedState,
    ::testing::Values(StateKept{spec::Precision::kFp32}, StateKept{spec::Precision::kBf16},
                      StateKept{spec::Precision::kBf16, spec::Optimizer::kMuon},
                      StateKept{.experts = 4}));

}  // namespace
}  // namespace assay::train
