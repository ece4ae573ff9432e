// GPU limits as the command line gives them: "20GiB", "30%", "high",
// "0=memory:20GiB,compute:30%". Pure; limit_plan.h checks them against the machine's GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "observe/wire/gpu_region.h"

namespace assay::share {

// Values that were not given are absent. "none" lifts a limit: kGpuUnlimited bytes, the whole
// share.
struct Limits {
  std::optional<std::uint64_t> bytes;
  std::optional<std::uint32_t> thousandths;
  std::optional<wire::GpuPriority> priority;
  std::optional<bool> borrow;

  [[nodiscard]] bool empty() const { return !bytes && !thousandths && !priority && !borrow; }
  bool operator==(const Limits&) const = default;
};

// "20GiB", "none". Errors are usage errors with an empty `where`: the caller knows the option.
base::Result<std::uint64_t> parse_memory_limit(std::string_view text);
// "30%", "30", "12.5%", "none"; in thousandths.
base::Result<std::uint32_t> parse_compute_limit(std::string_view text);
// "high", "normal", "low".
base::Result<wire::GpuPriority> parse_priority(std::string_view text);
std::string_view name_of(wire::GpuPriority priority);

// "0=memory:20GiB,compute:30%,priority:high,borrow:yes"
struct DeviceLimits {
  std::string device;  // as written
  Limits limits;
};
base::Result<DeviceLimits> parse_device_limits(std::string_view text);

// The limit options of a command line. Each is a list, so that an empty value differs from an
// absent one. The last value of a list counts, but all of `devices`.
struct GpuLimitOptions {
  std::vector<std::string> memory;
  std::vector<std::string> compute;
  std::vector<std::string> devices;
  std::vector<std::string> priority;
  bool borrow = false;
  bool no_borrow = false;

  [[nodiscard]] bool empty() const {
    return memory.empty() && compute.empty() && devices.empty() && priority.empty() && !borrow &&
           !no_borrow;
  }
};

// As command-line arguments: "--gpu-memory=20GiB", "--gpu-borrow".
std::vector<std::string> to_arguments(const GpuLimitOptions& options);
// Adds one such argument. False if it is not a limit option.
bool parse_option(std::string_view argument, GpuLimitOptions& options);
// Adds the options of a later command line, which take precedence.
void add_options(const GpuLimitOptions& later, GpuLimitOptions& options);

}  // namespace assay::share
