#include "assay-train/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/folders.h"
#include "base/host_name.h"
#include "base/text.h"
#include "cli/number_option.h"
#include "train/cpu/cpu_backend.h"
#include "train/cuda/cuda_backend.h"
#include "train/threads.h"

namespace assay::cli {
namespace {

base::Result<TrainingDevice> opened(std::unique_ptr<train::Backend> backend) {
  ASSAY_TRY(const std::int64_t available, backend->available_bytes());
  return TrainingDevice{std::move(backend), available, std::nullopt};
}

base::Result<TrainingDevice> cpu_device(spec::JobSpec& job, const RankResources& share) {
  job.train.precision = spec::Precision::kFp32;
  const int threads = threads_of(share.local_ranks);
  ASSAY_TRY(TrainingDevice device, opened(train::cpu::make_cpu_backend(threads, share.groups)));
  device.available_bytes /= share.local_ranks;
  return device;
}

base::Result<TrainingDevice> cuda_device(spec::JobSpec& job, const RankResources& share) {
  train::cuda::CudaOptions options;
  options.device = share.gpu;
  options.device_ranks = share.gpu_ranks;
  options.groups = share.groups;
  options.host_ranks = share.local_ranks;
  options.deterministic_attention = job.train.deterministic;
  std::string no_cache;
  options.tuning_file = tuning_file(&no_cache);
  ASSAY_TRY(auto backend, train::cuda::make_cuda_backend(options));
  if (job.train.precision == spec::Precision::kFp32) job.train.precision = spec::Precision::kBf16;
  std::string bus_id = backend->pci_bus_id();
  ASSAY_TRY(TrainingDevice device, opened(std::move(backend)));
  device.gpu_bus_id = std::move(bus_id);
  device.gpu_ranks = share.gpu_ranks;
  if (!no_cache.empty()) {
    device.note = "cannot cache the fastest matrix-product algorithms: " + no_cache;
  }
  device.available_bytes /= share.gpu_ranks;
  return device;
}

std::string without_hint(const base::Error& error) {
  return error.where.empty() ? error.what : error.where + ": " + error.what;
}

// A job whose devices are GPUs would take hours on CPUs, unnoticed on a rented machine whose driver
// is missing: that is only done on request.
base::Error no_gpu(const spec::JobSpec& job, const base::Error& why) {
  return base::unfit_error("train",
                           fmt::format("the job is for {}, but no GPU can be used here: {}",
                                       job.cluster.device.name, without_hint(why)),
                           "see whether nvidia-smi works, or train on CPUs with --device cpu");
}

// `generate` and `score` run on what there is: they have a model, but no devices that it is for.
bool is_meant_for_gpus(const spec::JobSpec& job) {
  return job.cluster.device.kind == spec::DeviceKind::kGpu && !job.cluster.device.name.empty() &&
         job.train.precision != spec::Precision::kFp32;
}

// A job that sets fp32 is meant for a CPU; any other for a GPU, if a usable one exists.
base::Result<TrainingDevice> automatic_device(spec::JobSpec& job, const RankResources& share) {
  const auto on_cpu = [&](std::string why) -> base::Result<TrainingDevice> {
    ASSAY_TRY(TrainingDevice device, cpu_device(job, share));
    device.why = std::move(why);
    return device;
  };
  if (job.train.precision == spec::Precision::kFp32) {
    return on_cpu("the job sets train.precision = \"fp32\"");
  }
  auto gpu = cuda_device(job, share);
  if (gpu) {
    gpu->why = fmt::format("GPU {} of {}, and train.precision is not fp32", share.gpu,
                           train::cuda::device_count());
    return gpu;
  }
  // With several ranks, all have already agreed on using GPUs.
  if (share.groups != nullptr && train::cuda::device_count() > 0) return gpu;
  if (is_meant_for_gpus(job)) return base::fail(no_gpu(job, gpu.error()));
  return on_cpu(without_hint(gpu.error()));
}

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

// A job that sets fp32 explicitly is meant for a CPU.
bool is_for_gpus(const std::string& name, const spec::JobSpec& job) {
  return name == "cuda" || (name == "auto" && job.train.precision != spec::Precision::kFp32 &&
                            train::cuda::device_count() > 0);
}

base::Result<void> check_device(const std::string& name, const spec::JobSpec& job) {
  if (name != "auto" || !is_meant_for_gpus(job) || train::cuda::device_count() > 0) return {};
  const auto none = train::cuda::make_cuda_backend({});
  return none ? base::Result<void>{} : base::fail(no_gpu(job, none.error()));
}

base::Result<TrainingDevice> choose_device(const std::string& name, spec::JobSpec& job,
                                           const RankResources& share) {
  if (job.train.precision == spec::Precision::kFp16) {
    return base::fail(base::usage_error("train.precision", "fp16 training is not supported",
                                        "train.precision = \"bf16\""));
  }
  if (name == "cpu") return cpu_device(job, share);
  if (name == "cuda") return cuda_device(job, share);
  if (name == "auto") return automatic_device(job, share);
  return base::fail(base::usage_error("train --device", fmt::format("unknown device '{}'", name),
                                      "one of auto, cpu, cuda"));
}

std::string tuning_file(std::string* why) {
  const std::filesystem::path folder = base::user_cache_folder();
  if (folder.empty()) {
    if (why != nullptr) *why = "neither XDG_CACHE_HOME nor HOME names a folder";
    return {};
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return (folder / "matrix-products").string();
  if (why != nullptr) *why = fmt::format("{}: {}", folder.string(), error.message());
  return {};
}

int threads_of(int local_ranks) {
  return std::max(1, train::usable_processors() / local_ranks);
}

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
