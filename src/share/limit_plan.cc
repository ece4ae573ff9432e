#include "share/limit_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::share {
namespace {

using machine::GpuName;

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

base::Result<Limits> limits_of_all(const std::string& verb, const LimitOptions& options) {
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

base::Result<LimitPlan> plan_limits(const std::string& verb, const LimitOptions& options,
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
