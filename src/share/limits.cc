#include "share/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/decimal.h"
#include "base/text.h"
#include "base/units.h"

namespace assay::share {
namespace {

constexpr std::string_view kNone = "none";
constexpr std::array<std::pair<std::string_view, wire::GpuPriority>, 3> kPriorities = {
    {{"high", wire::GpuPriority::kHigh},
     {"normal", wire::GpuPriority::kNormal},
     {"low", wire::GpuPriority::kLow}}};

tl::unexpected<base::Error> wrong(std::string what, std::string hint) {
  return base::fail(base::usage_error({}, std::move(what), std::move(hint)));
}

// One "KEY:VALUE" of a device.
base::Result<void> parse_part(std::string_view part, Limits& limits) {
  const std::size_t colon = part.find(':');
  const std::string key(part.substr(0, colon));
  const std::string_view value =
      colon == std::string_view::npos ? std::string_view() : part.substr(colon + 1);
  static const std::vector<std::string> kKeys = {"memory", "compute", "priority", "borrow"};
  if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
    return wrong(fmt::format("unknown limit '{}'", key),
                 fmt::format("one of {}", fmt::join(kKeys, ", ")));
  }
  const bool again = (key == "memory" && limits.bytes) ||
                     (key == "compute" && limits.thousandths) ||
                     (key == "priority" && limits.priority) || (key == "borrow" && limits.borrow);
  if (again) return wrong(fmt::format("'{}' is given twice", key), "give it once");
  if (colon == std::string_view::npos) {
    return wrong(fmt::format("'{}' has no value", key), "for example memory:20GiB,compute:30%");
  }
  if (key == "memory") {
    ASSAY_TRY(limits.bytes, parse_memory_limit(value));
  } else if (key == "compute") {
    ASSAY_TRY(limits.thousandths, parse_compute_limit(value));
  } else if (key == "priority") {
    ASSAY_TRY(limits.priority, parse_priority(value));
  } else if (value == "yes" || value == "no") {
    limits.borrow = value == "yes";
  } else {
    return wrong(fmt::format("borrow is '{}'", value), "yes or no");
  }
  return {};
}

}  // namespace

base::Result<std::uint64_t> parse_memory_limit(std::string_view text) {
  if (text == kNone) return wire::kGpuUnlimited;
  // Elsewhere a plain number means bytes; as a GPU limit it is almost certainly a mistake.
  if (const std::size_t size = base::decimal_size(text); size != 0 && size == text.size()) {
    return wrong(fmt::format("'{}' has no unit", text), "for example 20GiB, or none for no limit");
  }
  ASSAY_TRY(const base::Bytes bytes, base::parse_bytes(text));
  if (bytes.count() == 0) {
    return wrong("a memory limit of 0 would let nothing run",
                 "for example 20GiB, or none for no limit");
  }
  return static_cast<std::uint64_t>(bytes.count());
}

base::Result<std::uint32_t> parse_compute_limit(std::string_view text) {
  constexpr const char* kExpected = "expected a share such as 30%, or none for no limit";
  if (text == kNone) return wire::kGpuWholeShare;
  const std::size_t size = text.starts_with('-') ? 0 : base::decimal_size(text);
  if (size == 0) return wrong(fmt::format("'{}' is not a share of a GPU", text), kExpected);
  const std::string_view unit = text.substr(size);
  if (!unit.empty() && unit != "%") {
    return wrong(fmt::format("'{}' is not a share of a GPU: it does not end with %", text),
                 kExpected);
  }
  const auto thousandths = base::decimal_times(text.substr(0, size), 10);
  if (!thousandths && thousandths.error() != base::DecimalError::kTooLarge) {
    return wrong(fmt::format("'{}' is finer than a tenth of a percent", text), kExpected);
  }
  if (!thousandths || *thousandths > wire::kGpuWholeShare) {
    return wrong(fmt::format("'{}' is more than the whole GPU", text), kExpected);
  }
  if (*thousandths == 0) return wrong("a share of 0 would let nothing run", kExpected);
  // 30 is 30%, but 0.3 may have been meant as a fraction.
  if (unit.empty() && *thousandths < 10) {
    return wrong(fmt::format("'{}' may be a fraction or a percentage", text),
                 fmt::format("{}% or a share such as 30%?", text));
  }
  return static_cast<std::uint32_t>(*thousandths);
}

base::Result<wire::GpuPriority> parse_priority(std::string_view text) {
  for (const auto& [name, priority] : kPriorities) {
    if (text == name) return priority;
  }
  return wrong(fmt::format("'{}' is not a priority", text), "high, normal or low");
}

std::string_view name_of(wire::GpuPriority priority) {
  for (const auto& [name, known] : kPriorities) {
    if (priority == known) return name;
  }
  return "normal";
}

base::Result<DeviceLimits> parse_device_limits(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return wrong(fmt::format("'{}' does not name a GPU and its limits", text),
                 "for example 0=memory:20GiB,compute:30%");
  }
  DeviceLimits found{std::string(text.substr(0, equals)), {}};
  std::string_view rest = text.substr(equals + 1);
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    ASSAY_TRY_VOID(parse_part(rest.substr(0, comma), found.limits));
    if (more) rest.remove_prefix(comma + 1);
  }
  return found;
}

std::vector<std::string> to_arguments(const GpuLimitOptions& options) {
  std::vector<std::string> arguments;
  if (!options.memory.empty()) arguments.push_back("--gpu-memory=" + options.memory.back());
  if (!options.compute.empty()) arguments.push_back("--gpu-compute=" + options.compute.back());
  for (const std::string& device : options.devices) arguments.push_back("--gpu=" + device);
  if (options.borrow) arguments.emplace_back("--gpu-borrow");
  if (!options.priority.empty()) arguments.push_back("--priority=" + options.priority.back());
  return arguments;
}

bool parse_option(std::string_view argument, GpuLimitOptions& options) {
  const std::size_t equals = argument.find('=');
  const std::string_view name = argument.substr(0, equals);
  if (argument == "--gpu-borrow") {
    options.borrow = true;
    return true;
  }
  if (equals == std::string_view::npos) return false;
  const std::array<std::pair<std::string_view, std::vector<std::string>*>, 4> lists = {
      {{"--gpu-memory", &options.memory},
       {"--gpu-compute", &options.compute},
       {"--gpu", &options.devices},
       {"--priority", &options.priority}}};
  for (const auto& [known, list] : lists) {
    if (name != known) continue;
    list->emplace_back(argument.substr(equals + 1));
    return true;
  }
  return false;
}

void add_options(const GpuLimitOptions& later, GpuLimitOptions& options) {
  const auto add = [](const std::vector<std::string>& from, std::vector<std::string>& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  add(later.memory, options.memory);
  add(later.compute, options.compute);
  add(later.priority, options.priority);
  // Devices of the later command line replace those of the earlier one.
  if (!later.devices.empty()) options.devices = later.devices;
  options.borrow = options.borrow || later.borrow;
}

}  // namespace assay::share
