#include "share/plan.h"

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

base::Result<Limits> limits_of_all(const std::string& verb, const LimitWords& words) {
  Limits all;
  if (!words.memory.empty()) {
    ASSAY_TRY(all.bytes, at(verb + " --gpu-memory", parse_memory_limit(words.memory.back())));
  }
  if (!words.compute.empty()) {
    ASSAY_TRY(all.thousandths,
              at(verb + " --gpu-compute", parse_compute_limit(words.compute.back())));
  }
  if (!words.priority.empty()) {
    ASSAY_TRY(all.priority, at(verb + " --priority", parse_priority(words.priority.back())));
  }
  if (words.borrow && words.no_borrow) {
    return base::fail(base::usage_error(verb + " --gpu-borrow",
                                        "both it and its opposite are given", "give one of them"));
  }
  if (words.borrow || words.no_borrow) all.borrow = words.borrow;
  return all;
}

// A device that the words name, with nobody to ask about it: only a whole UUID will do.
base::Result<LimitPlan::Device> device_unseen(const std::string& where, const DeviceLimits& said) {
  const auto uuid = parse_uuid(said.device);
  if (!uuid) {
    return base::fail(base::usage_error(
        where, fmt::format("which GPU '{}' is cannot be found out without NVML", said.device),
        "give its whole UUID"));
  }
  return LimitPlan::Device{*uuid, std::nullopt, said.limits};
}

base::Result<LimitPlan::Device> device_seen(const std::string& where, const DeviceLimits& said,
                                            const Surroundings& surroundings,
                                            const std::vector<GpuName>& visible) {
  ASSAY_TRY(const GpuName gpu, at(where, gpu_named(visible, said.device)));
  const bool by_index = said.device.find_first_not_of("0123456789") == std::string::npos;
  if (by_index && !order_is_known(*surroundings.gpus, surroundings.cuda)) {
    return base::fail(base::usage_error(
        where,
        fmt::format("GPUs differ here, and which one CUDA calls {} is its own affair", said.device),
        "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or give the UUID that nvidia-smi -L shows"));
  }
  if (is_limit(said.limits.bytes)) {
    ASSAY_TRY_VOID(fits(where, *said.limits.bytes, gpu, "give it less, or no limit"));
  }
  const auto uuid = parse_uuid(gpu.uuid);
  if (!uuid) {
    return base::fail(base::usage_error(
        where, fmt::format("GPU {} tells no UUID by which it could be known", short_name(gpu)),
        "limit all GPUs alike with --gpu-memory and --gpu-compute"));
  }
  return LimitPlan::Device{*uuid, gpu.memory, said.limits};
}

// The limit of all holds wherever a device has none of its own.
base::Result<void> check_all(const std::string& verb, const LimitPlan& plan,
                             const std::vector<GpuName>& visible) {
  if (!is_limit(plan.all.bytes)) return {};
  for (const GpuName& gpu : visible) {
    const auto uuid = parse_uuid(gpu.uuid);
    const bool own = std::any_of(plan.devices.begin(), plan.devices.end(), [&](const auto& device) {
      return device.uuid == uuid && device.limits.bytes;
    });
    if (own) continue;
    ASSAY_TRY_VOID(fits(verb + " --gpu-memory", *plan.all.bytes, gpu,
                        "give less, or limit each GPU by itself with --gpu"));
  }
  return {};
}

}  // namespace

base::Result<LimitPlan> plan_limits(const std::string& verb, const LimitWords& words,
                                    const Surroundings& surroundings) {
  LimitPlan plan;
  ASSAY_TRY(plan.all, limits_of_all(verb, words));
  const std::string where = verb + " --gpu";
  std::vector<DeviceLimits> said;
  for (const std::string& text : words.devices) {
    ASSAY_TRY(DeviceLimits one, at(where, parse_device_limits(text)));
    said.push_back(std::move(one));
  }
  if (plan.all.empty() && said.empty()) return plan;
  if (!surroundings.gpus && !surroundings.unchecked_allowed) {
    return base::fail(base::usage_error(
        verb, fmt::format("GPU limits cannot be checked here: {}", surroundings.why),
        "ASSAY_GPU=1 sets them all the same"));
  }
  std::vector<GpuName> visible;
  if (surroundings.gpus) {
    visible = visible_gpus(*surroundings.gpus, surroundings.cuda);
    if (visible.empty()) {
      return base::fail(base::usage_error(
          verb,
          surroundings.gpus->empty() ? "there is no GPU to limit"
                                     : "CUDA_VISIBLE_DEVICES leaves no GPU that could be limited",
          "leave the limits out"));
    }
  }
  for (const DeviceLimits& one : said) {
    ASSAY_TRY(LimitPlan::Device device, surroundings.gpus
                                            ? device_seen(where, one, surroundings, visible)
                                            : device_unseen(where, one));
    const auto same = [&](const LimitPlan::Device& other) { return other.uuid == device.uuid; };
    if (std::any_of(plan.devices.begin(), plan.devices.end(), same)) {
      return base::fail(base::usage_error(where, fmt::format("GPU '{}' is named twice", one.device),
                                          "say all of it at once"));
    }
    plan.devices.push_back(std::move(device));
  }
  if (plan.devices.size() > wire::kGpuDevices) {
    return base::fail(
        base::usage_error(where, fmt::format("more than {} GPUs by themselves", wire::kGpuDevices),
                          "limit them alike with --gpu-memory and --gpu-compute"));
  }
  if (surroundings.gpus) ASSAY_TRY_VOID(check_all(verb, plan, visible));
  return plan;
}

}  // namespace assay::share
