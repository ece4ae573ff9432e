// Chooses the device a job runs on, queries its free memory, and assigns GPUs to ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "control/rank_assignment.h"
#include "spec/job.h"
#include "train/backend.h"
#include "train/rank_groups.h"

namespace assay::cli {

struct TrainingDevice {
  std::unique_ptr<train::Backend> backend;
  std::int64_t available_bytes = 0;
  // PCI address of a GPU; none for a CPU.
  std::optional<std::string> gpu_bus_id = std::nullopt;
  int gpu_ranks = 1;      // ranks that share the GPU
  std::string note = {};  // a message for the user
  std::string why = {};   // why `auto` chose this device
};

// The share of the machine that one of several ranks gets.
struct RankResources {
  train::RankGroups* groups = nullptr;  // null for a single rank
  int local_ranks = 1;                  // on this machine
  int gpu = 0;                          // this rank's GPU, and the number of ranks that share it
  int gpu_ranks = 1;
};

// Whether the ranks of the job would run on GPUs; with auto, if there are any.
bool is_for_gpus(const std::string& name, const spec::JobSpec& job);

// Refuses a job for GPUs where there is none, unless CPUs were asked for by name.
base::Result<void> check_device(const std::string& name, const spec::JobSpec& job);

// `name` is auto, cpu or cuda. A CPU computes in fp32, so choosing one sets the job's precision to
// fp32; choosing a GPU turns fp32 into bf16.
base::Result<TrainingDevice> choose_device(const std::string& name, spec::JobSpec& job,
                                           const RankResources& share = {});

// The file that caches the fastest algorithms, in the XDG cache folder. Empty if there is no such
// folder and it cannot be created; `why`, if not null, then says so.
std::string tuning_file(std::string* why = nullptr);

// The number of threads for each of `local_ranks` ranks on this machine.
int threads_of(int local_ranks);

struct GpuOfRank {
  int index = 0;  // among those visible to the process
  int ranks = 1;  // number of ranks that share it
};

// One GPU for each rank of this machine, or for each ASSAY_RANKS_PER_GPU of them. Sets NCCL_HOSTID
// if ranks share a GPU: NCCL refuses to connect a GPU with itself unless it believes that the ranks
// are on different machines.
base::Result<GpuOfRank> gpu_of(const control::RankAssignment& assignment);

// Whether this machine has GPUs for all ranks of the layout.
base::Result<void> check_gpus(const spec::LayoutSpec& layout);

}  // namespace assay::cli
