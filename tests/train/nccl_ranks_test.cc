// Ranks that are processes over NCCL train what one rank trains, to the last bit, and what NCCL was
// asked to move is what the program lists. Two processes share a GPU and pass for two machines. The
// process of the test itself does not touch the GPU: a forked one could not use it then.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>

#include "base/testing/temp_dir.h"
#include "base/unique_fd.h"
#include "comm/cuda/nccl.h"
#include "comm/local.h"
#include "comm/testing/rank_processes.h"
#include "nccl/listed_calls.h"
#include "observe/wire/gpu_region.h"
#include "train/cuda/cuda_backend.h"
#include "train/rank_groups.h"
#include "train/rank_run.h"

namespace assay::train::cuda {
namespace {

namespace fs = std::filesystem;
using comm::Communicator;
using nccl_testing::Amount;
using nccl_testing::difference;
using nccl_testing::listed;
using nccl_testing::Moved;
using train::testing::RankRun;
using train::testing::Trained;
using wire::GpuOperation;

// What `assay run` has counted of this process.
Moved counted(const wire::GpuRegion& region) {
  Moved moved;
  for (const wire::GpuCollective& row : region.collectives) {
    if (row.key == 0 || region.slots[row.slot].process != ::getpid()) continue;
    Amount& amount = moved[{static_cast<GpuOperation>(row.operation.load()), row.type.load()}];
    amount.calls += row.calls;
    amount.bytes += row.bytes;
  }
  return moved;
}

// What the rank of a process has trained goes through files: its own elements, and zeros.
void write_file(const fs::path& file, std::span<const std::byte> bytes) {
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void write_trained(const fs::path& folder, const Trained& trained) {
  fs::create_directory(folder);
  for (const auto& [name, bytes] : trained.state) {
    std::string file = name;
    std::ranges::replace(file, '/', ':');
    write_file(folder / file, bytes);
  }
  if (!trained.scalars.empty()) {
    write_file(folder / "scalars of steps", std::as_bytes(std::span(trained.scalars)));
  }
}

// What the ranks have together. Ranks that have the same have the same bits.
std::map<std::string, std::string> read_trained(const fs::path& folder, int ranks) {
  std::map<std::string, std::string> files;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const auto& entry : fs::directory_iterator(folder / std::to_string(rank))) {
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(stream), {});
      std::string& whole = files[entry.path().filename()];
      whole.resize(bytes.size());
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        whole[i] = static_cast<char>(static_cast<unsigned char>(whole[i]) |
                                     static_cast<unsigned char>(bytes[i]));
      }
    }
  }
  return files;
}

class NcclRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access("/dev/nvidiactl", R_OK) != 0) GTEST_SKIP() << "there is no GPU";
    if (const char* path = std::getenv("ASSAY_GPU_REGION")) {
      const base::UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
      void* memory = ::mmap(nullptr, sizeof(wire::GpuRegion), PROT_READ, MAP_SHARED, fd.get(), 0);
      if (memory != MAP_FAILED) region_ = static_cast<const wire::GpuRegion*>(memory);
    }
  }

  // Trains in processes; returns the state and the figures of each step.
  std::map<std::string, std::string> run_layout(const spec::ModelSpec& model,
                                                const step::Choices& choices,
                                                const spec::LayoutSpec& layout) {
    const auto ranks = static_cast<int>(layout.dp * layout.inner_ranks());
    const fs::path folder = directory_.path() / fmt::format("run-{}", ++runs_);
    fs::create_directory(folder);
    comm::testing::SharedMemory shared;
    const auto body = [&](Communicator& world) -> base::Result<void> {
      step::Choices own = choices;
      ASSAY_TRY(own.layout, step::layout_of(layout, world.rank()));
      std::unique_ptr<RankGroups> groups;
      if (ranks > 1) {
        ASSAY_TRY(groups, RankGroups::make(world, own.layout));
      }
      RankRun run{.model = model, .choices = own};
      run.make_backend = [&] {
        // The same algorithms everywhere: what one rank has timed first.
        return make_cuda_backend({.tuning_file = (directory_.path() / "tuned").string(),
                                  .copies_state = false,
                                  .groups = groups.get()});
      };
      Moved before;
      // How many rows go to which expert's rank only a step knows, so no list has them.
      if (region_ != nullptr && layout.ep == 1) {
        run.before_steps = [&](const step::Program&) -> base::Result<void> {
          before = counted(*region_);
          return {};
        };
        run.after_steps = [&](const step::Program& program) -> base::Result<void> {
          const Moved found = difference(counted(*region_), before);
          if (found == listed(program, run.steps)) return {};
          return base::fail(base::failed_error(
              "NCCL", fmt::format("was asked for{} where the program lists{}", to_text(found),
                                  to_text(listed(program, run.steps)))));
        };
      }
      Trained trained;
      std::mutex mutex;
      auto done = train::testing::run_rank(run, trained, mutex);
      if (!done) {
        world.abort(done.error());
        return done;
      }
      write_trained(folder / std::to_string(world.rank()), trained);
      if (HasFailure()) return base::fail(base::failed_error("rank", "has failed expectations"));
      // Who ends first would be missed by the other.
      ++shared.flag(0);
      shared.await(0, ranks);
      return {};
    };
    const auto lines = comm::testing::run_processes(
        {.ranks = ranks,
         .body = body,
         .connect = [&](int rank,
                        comm::KeyValue& store) -> base::Result<std::unique_ptr<Communicator>> {
           if (ranks == 1) return comm::make_single_rank();
           ::setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 1);
           ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
           ::setenv("NCCL_NVLS_ENABLE", "0", 0);
           comm::NcclOptions options;
           options.rank = rank;
           options.ranks = ranks;
           options.call_timeout = std::chrono::seconds(60);
           return comm::connect_nccl(options, store);
         },
         .shared = &shared,
         .may_leave = true});
    EXPECT_THAT(lines, ::testing::Each("ok"));
    return read_trained(folder, ranks);
  }

  void expect_as_one_rank(const step::Choices& choices, std::vector<spec::LayoutSpec> layouts) {
    const auto one = run_layout(model_, choices, {.dp = 1});
    ASSERT_GT(one.size(), 1U);
    for (const spec::LayoutSpec& layout : layouts) {
      SCOPED_TRACE(fmt::format("dp {} fsdp {} zero {} pp {} chunks {}", layout.dp, layout.fsdp,
                               layout.zero, layout.pp, layout.pp_chunks));
      expect_equal(run_layout(model_, choices, layout), one);
    }
  }

  static void expect_equal(const std::map<std::string, std::string>& found,
                           const std::map<std::string, std::string>& expected) {
    std::string different;
    for (const auto& [name, bytes] : expected) {
      if (!found.contains(name) || found.at(name) != bytes) different += " " + name;
    }
    EXPECT_EQ(different, "");
    EXPECT_EQ(found.size(), expected.size());
  }

  const spec::ModelSpec model_{.vocab = 1000,
                               .dim = 256,
                               .layers = 4,
                               .heads = 4,
                               .kv_heads = 2,
                               .head_dim = 64,
                               .ffn = 512,
                               .context = 512};

  base::testing::TempDir directory_;
  int runs_ = 0;
  const wire::GpuRegion* region_ = nullptr;
};

step::Choices choices_with(spec::Optimizer optimizer) {
  return {.numerics = step::numerics_of(spec::Precision::kBf16),
          .recompute = spec::Recompute::kFfn,
          .optimizer = optimizer,
          .sequence = 64,
          .micro_batch = 2};
}

TEST_F(NcclRanks, TrainWhatOneRankTrains) {
  using spec::PipelineSchedule;
  expect_as_one_rank(
      choices_with(spec::Optimizer::kAdamw),
      {{.dp = 1, .fsdp = 2},
       {.dp = 1, .fsdp = 2, .zero = 1},
       {.dp = 2},
       {.dp = 1, .pp = 2},
       {.dp = 1, .pp = 2, .pp_schedule = PipelineSchedule::kInterleaved, .pp_chunks = 2}});
}

// Sums are cut differently, so bits are those of the layout, and the same every time.
TEST_F(NcclRanks, TensorAndContextParallelRanksRepeatThemselves) {
  const step::Choices choices = choices_with(spec::Optimizer::kAdamw);
  for (const spec::LayoutSpec& layout :
       {spec::LayoutSpec{.dp = 1, .tp = 2}, spec::LayoutSpec{.dp = 1, .cp = 2}}) {
    SCOPED_TRACE(fmt::format("tp {} cp {}", layout.tp, layout.cp));
    const auto first = run_layout(model_, choices, layout);
    expect_equal(run_layout(model_, choices, layout), first);
  }
}

// Experts over ranks: what is not of experts has one rank's bits in the first step, so the loss
// has; a sum over rows of several ranks is rounded otherwise, and the same way every time.
TEST_F(NcclRanks, ExpertsOverRanks) {
  const step::Choices choices = choices_with(spec::Optimizer::kAdamw);
  spec::ModelSpec mixture = model_;
  mixture.layers = 2;
  mixture.experts = 4;
  mixture.experts_per_token = 2;
  const auto first_loss = [](const std::map<std::string, std::string>& trained) {
    Scalars first;
    std::memcpy(first.data(), trained.at("scalars of steps").data(), sizeof first);
    return first[static_cast<std::size_t>(step::Scalar::kLossSum)];
  };
  const float one = first_loss(run_layout(mixture, choices, {.dp = 1}));
  const auto first = run_layout(mixture, choices, {.dp = 1, .ep = 2});
  EXPECT_EQ(first_loss(first), one);
  expect_equal(run_layout(mixture, choices, {.dp = 1, .ep = 2}), first);
}

TEST_F(NcclRanks, TrainWhatOneRankTrainsWithMuon) {
  expect_as_one_rank(choices_with(spec::Optimizer::kMuon), {{.dp = 1, .fsdp = 2, .zero = 2}});
}

}  // namespace
}  // namespace assay::train::cuda
