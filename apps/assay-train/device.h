// Chooses the device a job runs on and queries its free memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "spec/job.h"
#include "train/backend.h"
#include "train/rank_groups.h"

namespace assay::cli {

struct Device {
  std::unique_ptr<train::Backend> backend;
  std::int64_t available_bytes = 0;
  // PCI address of a GPU; none for a CPU.
  std::optional<std::string> gpu_bus_id = std::nullopt;
  std::string note = {};  // for people
  std::string why = {};   // auto chose it
};

// What one rank of several gets of the machine.
struct RankShare {
  train::RankGroups* groups = nullptr;  // of several ranks
  int local_ranks = 1;                  // on this machine
  int gpu = 0;                          // the one of this rank, and how many ranks have it
  int gpu_ranks = 1;
};

// Whether several ranks of the job would be on GPUs: with auto, if there are GPUs.
bool is_for_gpus(const std::string& name, const spec::JobSpec& job);

// `name` is auto, cpu or cuda. A CPU computes in fp32, so choosing one sets the job's precision to
// fp32; choosing a GPU turns fp32 into bf16.
base::Result<Device> choose_device(const std::string& name, spec::JobSpec& job,
                                   const RankShare& share = {});

// Where the fastest algorithms are cached, in the XDG cache folder. Empty: there is no such folder
// and none can be made, and `why`, if it is not null, says so.
std::string tuning_file(std::string* why = nullptr);

// The processors that one of this many ranks on this machine uses.
int threads_of(int local_ranks);

}  // namespace assay::cli
