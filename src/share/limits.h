// What a run may have of a GPU, in the words of the command line: "20GiB", "30%", "high",
// "0=memory:20GiB,compute:30%". Pure: nothing here knows which GPUs there are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "observe/wire/gpu_region.h"

namespace assay::share {

// What is not said is not there. "none" lifts a limit: kGpuUnlimited bytes, the whole share.
struct Limits {
  std::optional<std::uint64_t> bytes;
  std::optional<std::uint32_t> thousandths;
  std::optional<wire::GpuPriority> priority;
  std::optional<bool> borrow;

  [[nodiscard]] bool empty() const { return !bytes && !thousandths && !priority && !borrow; }
  bool operator==(const Limits&) const = default;
};

// "20GiB", "none". Errors are usage errors whose `where` is empty: the caller knows the option.
base::Result<std::uint64_t> parse_memory_limit(std::string_view text);
// "30%", "12.5%", "none"; in thousandths.
base::Result<std::uint32_t> parse_compute_limit(std::string_view text);
// "high", "normal", "low".
base::Result<wire::GpuPriority> parse_priority(std::string_view text);
std::string_view name_of(wire::GpuPriority priority);

// "0=memory:20GiB,compute:30%,priority:high,borrow:yes"
struct DeviceLimits {
  std::string device;  // as it was written
  Limits limits;
};
base::Result<DeviceLimits> parse_device_limits(std::string_view text);

// The options of a command line. Lists, so that an empty text can be told from none; the last
// counts, and of devices all.
struct LimitWords {
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

// As they can be given again: "--gpu-memory=20GiB", "--gpu-borrow".
std::vector<std::string> options_of(const LimitWords& words);
// The other way round. False, and nothing done, if it is none of these options.
bool take_option(std::string_view option, LimitWords& words);
// What a later command line says, on top of what an earlier one did.
void add_words(const LimitWords& later, LimitWords& words);

}  // namespace assay::share
