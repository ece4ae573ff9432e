#include "assay-train/device.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "train/cpu/cpu_backend.h"

namespace assay::cli {
namespace {

std::int64_t host_memory() {
  return ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
}

Device cpu_device(spec::JobSpec& job) {
  job.train.precision = spec::Precision::kFp32;
  return {.backend = train::cpu::make_cpu_backend(), .available_bytes = host_memory()};
}

}  // namespace

base::Result<Device> choose_device(const std::string& name, spec::JobSpec& job) {
  if (name == "cpu" || name == "auto") return cpu_device(job);
  return base::fail(base::usage_error("train --device", fmt::format("unknown device '{}'", name),
                                      "one of auto, cpu, cuda"));
}

}  // namespace assay::cli
