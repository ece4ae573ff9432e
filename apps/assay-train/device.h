// Which device a job runs on, and how much memory there is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "spec/job.h"
#include "train/backend.h"

namespace assay::cli {

struct Device {
  std::unique_ptr<train::Backend> backend;
  std::int64_t available_bytes = 0;
  // Where a GPU is plugged in, if it says; nothing: a CPU.
  std::optional<std::string> gpu_bus_id = std::nullopt;
};

// `name` is auto, cpu or cuda. A CPU computes in fp32, so the job's precision becomes that unless
// it was asked for in so many words.
base::Result<Device> choose_device(const std::string& name, spec::JobSpec& job);

}  // namespace assay::cli
