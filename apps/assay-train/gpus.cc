#include "assay-train/gpus.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"
#include "base/host_name.h"
#include "cli/number_option.h"
#include "train/cuda/cuda_backend.h"

namespace assay::cli {
namespace {

constexpr char kRanksPerGpu[] = "ASSAY_RANKS_PER_GPU";

base::Result<int> ranks_per_gpu() {
  const char* const text = std::getenv(kRanksPerGpu);
  if (text == nullptr || text[0] == '\0') return 1;
  return number_option<int>(kRanksPerGpu, text, 1, 64);
}

std::string gpus(std::int64_t count) {
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

}  // namespace

base::Result<GpuOfRank> gpu_of(const control::RankAssignment& assignment) {
  ASSAY_TRY(const int per_gpu, ranks_per_gpu());
  const int count = train::cuda::device_count();
  GpuOfRank gpu{assignment.local_rank / per_gpu, per_gpu};
  // Schedulers may make only one GPU visible to each task.
  const bool own_only =
      count == 1 && per_gpu == 1 && assignment.source != control::LauncherKind::kAssay;
  if (own_only) gpu.index = 0;
  if (gpu.index >= count) {
    return base::fail(base::unfit_error(
        fmt::format("rank {}", assignment.rank),
        fmt::format("is local rank {} on {}, but this process sees only {}", assignment.local_rank,
                    base::host_name(), gpus(count)),
        "start no more ranks on a machine than it has GPUs, or use --device cpu"));
  }
  if (per_gpu > 1) {
    const std::string host =
        fmt::format("{}-{}", base::host_name(), assignment.local_rank % per_gpu);
    ::setenv("NCCL_HOSTID", host.c_str(), 0);
  }
  return gpu;
}

base::Result<void> check_gpus(const spec::LayoutSpec& layout) {
  ASSAY_TRY(const int per_gpu, ranks_per_gpu());
  const std::int64_t ranks = layout.ranks.value_or(1);
  const std::int64_t needed = (ranks + per_gpu - 1) / per_gpu;
  const std::int64_t count = train::cuda::device_count();
  if (needed <= count) return {};
  return base::fail(base::unfit_error(
      "layout.ranks",
      fmt::format("{} ranks need {}, but {} can be used here", ranks, gpus(needed),
                  count == 0 ? "none" : gpus(count)),
      "choose a layout of fewer ranks, start one rank per GPU on several machines with srun, or "
      "use --device cpu"));
}

}  // namespace assay::cli
