#include "share/limit_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "base/number.h"
#include "base/text.h"

namespace assay::share {
namespace {

using machine::GpuName;

// The devices that CUDA can use: of a card divided into MIG slices, the slices.
std::vector<GpuName> usable(const std::vector<GpuName>& gpus) {
  std::vector<GpuName> out;
  std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(out),
               [](const GpuName& gpu) { return !gpu.sliced; });
  return out;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view start) {
  if (text.size() < start.size()) return false;
  return std::equal(start.begin(), start.end(), text.begin(), [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

// "GPU-" alone is not a prefix of a UUID.
bool may_be_uuid(std::string_view text) {
  return text.size() > 4 &&
         (starts_with_ignoring_case(text, "GPU-") || starts_with_ignoring_case(text, "MIG-"));
}

std::vector<const GpuName*> by_uuid(const std::vector<GpuName>& gpus, std::string_view text) {
  std::vector<const GpuName*> found;
  if (!may_be_uuid(text)) return found;
  for (const GpuName& gpu : gpus) {
    if (starts_with_ignoring_case(gpu.uuid, text) || (!gpu.old_id.empty() && gpu.old_id == text)) {
      found.push_back(&gpu);
    }
  }
  return found;
}

// Whether an index means the same to CUDA as here: CUDA sorts cards of different models by speed
// unless CUDA_DEVICE_ORDER asks for the bus order.
bool order_is_known(const std::vector<GpuName>& gpus, const CudaEnvironment& environment) {
  if (environment.device_order == "PCI_BUS_ID") return true;
  const std::vector<GpuName> all = usable(gpus);
  return std::all_of(all.begin(), all.end(), [&](const GpuName& gpu) {
    return gpu.name == all.front().name && gpu.memory == all.front().memory;
  });
}

// The device of `visible` that `text` names. Errors are usage errors with an empty `where`.
base::Result<GpuName> gpu_named(const std::vector<GpuName>& visible, std::string_view text) {
  const std::string there = visible.empty()       ? "the command will see none"
                            : visible.size() == 1 ? "the command will see one, 0"
                                                  : fmt::format("the command will see {}, 0 to {}",
                                                                visible.size(), visible.size() - 1);
  if (const auto index = base::parse_number<std::size_t>(text)) {
    if (*index < visible.size()) return visible[*index];
    return base::fail(base::usage_error({}, fmt::format("there is no GPU {}", text), there));
  }
  const auto found = by_uuid(visible, text);
  if (found.size() == 1) return *found.front();
  if (found.size() > 1) {
    return base::fail(base::usage_error(
        {}, fmt::format("'{}' is a prefix of {} UUIDs", text, found.size()), "give more of it"));
  }
  return base::fail(
      base::usage_error({}, fmt::format("there is no GPU '{}'", text),
                        there + "; a GPU is an index, a UUID (GPU-…, MIG-…) or a prefix of one"));
}

template <class T>
base::Result<T> at(const std::string& where, base::Result<T> result) {
  if (!result) result.error().where = where;
  return result;
}

bool is_limit(const std::optional<std::uint64_t>& bytes) {
  return bytes && *bytes != wire::kGpuUnlimited;
}

base::Result<void> fits(const std::string& where, std::uint64_t bytes, const GpuName& gpu,
                        const std::string& hint) {
  if (!gpu.memory || bytes <= static_cast<std::uint64_t>(gpu.memory->count())) return {};
  return base::fail(base::usage_error(
      where,
      fmt::format("{} is more than GPU {} ({}) has, which is {}",
                  base::to_text(base::Bytes(static_cast<std::int64_t>(bytes))), short_name(gpu),
                  gpu.name.empty() ? gpu.uuid : gpu.name, base::to_text(*gpu.memory)),
      hint));
}

base::Result<Limits> limits_of_all(const std::string& verb, const GpuLimitOptions& options) {
  Limits all;
  if (!options.memory.empty()) {
    ASSAY_TRY(all.bytes, at(verb + " --gpu-memory", parse_memory_limit(options.memory.back())));
  }
  if (!options.compute.empty()) {
    ASSAY_TRY(all.thousandths,
              at(verb + " --gpu-compute", parse_compute_limit(options.compute.back())));
  }
  if (!options.priority.empty()) {
    ASSAY_TRY(all.priority, at(verb + " --priority", parse_priority(options.priority.back())));
  }
  if (options.borrow && options.no_borrow) {
    return base::fail(base::usage_error(verb + " --gpu-borrow", "it contradicts --gpu-no-borrow",
                                        "give one of them"));
  }
  if (options.borrow || options.no_borrow) all.borrow = options.borrow;
  return all;
}

// Without NVML a device can be named by its whole UUID only.
base::Result<LimitPlan::Device> unchecked_device(const std::string& where,
                                                 const DeviceLimits& given) {
  const auto uuid = wire::parse_uuid(given.device);
  if (!uuid) {
    return base::fail(base::usage_error(
        where, fmt::format("without NVML, GPU '{}' cannot be identified", given.device),
        "give its whole UUID"));
  }
  return LimitPlan::Device{*uuid, std::nullopt, given.limits};
}

base::Result<LimitPlan::Device> checked_device(const std::string& where, const DeviceLimits& given,
                                               const LimitContext& context,
                                               const std::vector<GpuName>& visible) {
  ASSAY_TRY(const GpuName gpu, at(where, gpu_named(visible, given.device)));
  const bool by_index = given.device.find_first_not_of("0123456789") == std::string::npos;
  if (by_index && !order_is_known(*context.gpus, context.cuda)) {
    return base::fail(base::usage_error(
        where,
        fmt::format("the GPUs differ, and CUDA may number them in another order than NVML, so {} "
                    "is ambiguous",
                    given.device),
        "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or give the UUID that nvidia-smi -L shows"));
  }
  if (is_limit(given.limits.bytes)) {
    ASSAY_TRY_VOID(fits(where, *given.limits.bytes, gpu, "give it less, or no limit"));
  }
  const auto uuid = wire::parse_uuid(gpu.uuid);
  if (!uuid) {
    return base::fail(
        base::usage_error(where, fmt::format("GPU {} reports no UUID", short_name(gpu)),
                          "give all GPUs the same limits with --gpu-memory and --gpu-compute"));
  }
  return LimitPlan::Device{*uuid, gpu.memory, given.limits};
}

// The limit for all devices applies wherever a device has no limit of its own.
base::Result<void> check_all(const std::string& verb, const LimitPlan& plan,
                             const std::vector<GpuName>& visible) {
  if (!is_limit(plan.all.bytes)) return {};
  for (const GpuName& gpu : visible) {
    const auto uuid = wire::parse_uuid(gpu.uuid);
    const bool own = std::any_of(plan.devices.begin(), plan.devices.end(), [&](const auto& device) {
      return device.uuid == uuid && device.limits.bytes;
    });
    if (own) continue;
    ASSAY_TRY_VOID(fits(verb + " --gpu-memory", *plan.all.bytes, gpu,
                        "give less, or limit each GPU separately with --gpu"));
  }
  return {};
}

}  // namespace

std::vector<GpuName> visible_gpus(const std::vector<GpuName>& gpus,
                                  const CudaEnvironment& environment) {
  std::vector<GpuName> all = usable(gpus);
  if (!environment.visible_devices) return all;
  std::vector<GpuName> visible;
  std::string_view rest = *environment.visible_devices;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view entry = base::trim(rest.substr(0, comma));
    if (more) rest.remove_prefix(comma + 1);
    const GpuName* named = nullptr;
    if (const auto index = base::parse_number<std::size_t>(entry)) {
      if (*index < all.size()) named = &all[*index];
    } else if (const auto found = by_uuid(all, entry); found.size() == 1) {
      named = found.front();
    }
    if (named == nullptr) break;
    const auto same = [&](const GpuName& gpu) {
      return gpu.index == named->index && gpu.slice == named->slice;
    };
    if (std::any_of(visible.begin(), visible.end(), same)) return {};
    visible.push_back(*named);
  }
  return visible;
}

base::Result<LimitPlan> plan_limits(const std::string& verb, const GpuLimitOptions& options,
                                    const LimitContext& context) {
  LimitPlan plan;
  ASSAY_TRY(plan.all, limits_of_all(verb, options));
  const std::string where = verb + " --gpu";
  std::vector<DeviceLimits> given;
  for (const std::string& text : options.devices) {
    ASSAY_TRY(DeviceLimits one, at(where, parse_device_limits(text)));
    given.push_back(std::move(one));
  }
  if (plan.all.empty() && given.empty()) return plan;
  if (!context.gpus && !context.unchecked_allowed) {
    return base::fail(base::unfit_error(
        verb, fmt::format("GPU limits cannot be checked: {}", context.why_no_gpus),
        "set ASSAY_GPU=1 to apply them unchecked"));
  }
  std::vector<GpuName> visible;
  if (context.gpus) {
    visible = visible_gpus(*context.gpus, context.cuda);
    if (context.gpus->empty()) {
      return base::fail(
          base::unfit_error(verb, "there is no GPU to limit", "leave the limits out"));
    }
    if (visible.empty()) {
      return base::fail(
          base::usage_error(verb, "CUDA_VISIBLE_DEVICES hides every GPU, so there is none to limit",
                            "leave the limits out"));
    }
  }
  for (const DeviceLimits& one : given) {
    ASSAY_TRY(LimitPlan::Device device, context.gpus ? checked_device(where, one, context, visible)
                                                     : unchecked_device(where, one));
    const auto same = [&](const LimitPlan::Device& other) { return other.uuid == device.uuid; };
    if (std::any_of(plan.devices.begin(), plan.devices.end(), same)) {
      return base::fail(base::usage_error(where, fmt::format("GPU '{}' is named twice", one.device),
                                          "combine them: --gpu N=memory:…,compute:…"));
    }
    plan.devices.push_back(device);
  }
  if (plan.devices.size() > wire::kGpuDevices) {
    return base::fail(base::usage_error(
        where, fmt::format("more than {} GPUs with limits of their own", wire::kGpuDevices),
        "give all GPUs the same limits with --gpu-memory and --gpu-compute"));
  }
  if (context.gpus) ASSAY_TRY_VOID(check_all(verb, plan, visible));
  return plan;
}

}  // namespace assay::share
