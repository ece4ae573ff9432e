#include "share/usage_view.h"

#include <algorithm>

namespace assay::share {
namespace {

double per_second(std::uint64_t before, std::uint64_t now, double seconds) {
  return now > before ? static_cast<double>(now - before) / seconds : 0;
}

RunRates rates_between(const RunState& before, const RunState& now, double seconds) {
  return {.launches = per_second(before.launches, now.launches, seconds),
          .kernels = per_second(before.kernels, now.kernels, seconds),
          .copied_bytes = per_second(before.copied_bytes, now.copied_bytes, seconds),
          .collectives = per_second(before.collectives, now.collectives, seconds),
          .collective_bytes = per_second(before.collective_bytes, now.collective_bytes, seconds),
          .matmul_flops = std::max(0.0, now.matmul_flops - before.matmul_flops) / seconds};
}

const RunSample* same_run(const UsageSample* sample, const std::string& uid) {
  if (sample == nullptr) return nullptr;
  const auto found = std::find_if(sample->runs.begin(), sample->runs.end(),
                                  [&](const RunSample& run) { return run.uid == uid; });
  return found == sample->runs.end() ? nullptr : &*found;
}

const DeviceState* same_device(const RunSample* run, const wire::GpuUuid& uuid) {
  if (run == nullptr || !run->gpu) return nullptr;
  const auto& devices = run->gpu->devices;
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const DeviceState& device) { return device.uuid == uuid; });
  return found == devices.end() ? nullptr : &*found;
}

DeviceView device_view(const DeviceState& device, const DeviceState* before, const UsageSample& now,
                       double seconds) {
  DeviceView view{.state = device, .gpu = {}, .uuid = wire::uuid_text(device.uuid)};
  for (const machine::GpuName& gpu : now.gpus) {
    if (wire::parse_uuid(gpu.uuid) != device.uuid) continue;
    view.gpu = short_name(gpu);
    view.uuid = gpu.uuid;
    if (view.state.total == 0 && gpu.memory) {
      view.state.total = static_cast<std::uint64_t>(gpu.memory->count());
    }
  }
  const bool paced = device.share.limited() || device.busy_ns > 0;
  if (paced && before != nullptr && seconds > 0) {
    view.busy_percent = per_second(before->busy_ns, device.busy_ns, seconds) / 1e7;
    view.waited_percent = per_second(before->waited_ns, device.waited_ns, seconds) / 1e7;
  }
  return view;
}

base::Json nonzero_or_null(std::uint64_t value) {
  return value != 0 ? base::Json(value) : base::Json(nullptr);
}
base::Json device_json(const DeviceView& device) {
  const wire::GpuShare& share = device.state.share;
  const bool whole = share.thousandths >= wire::kGpuWholeShare;
  return {
      {"gpu", base::or_null(device.gpu)},
      {"uuid", device.uuid},
      {"memory_used_bytes", device.state.used},
      {"memory_limit_bytes", nonzero_or_null(device.state.limit)},
      {"memory_total_bytes", nonzero_or_null(device.state.total)},
      {"compute_limit_percent", whole ? base::Json(nullptr) : base::Json(share.thousandths / 10.0)},
      {"borrow", share.borrow},
      {"priority", name_of(share.priority)},
      {"busy_seconds", static_cast<double>(device.state.busy_ns) / 1e9},
      {"waited_seconds", static_cast<double>(device.state.waited_ns) / 1e9},
      {"busy_percent", base::or_null(device.busy_percent)},
      {"waited_percent", base::or_null(device.waited_percent)}};
}

base::Json rank_json(const RankProgress& rank) {
  return {{"rank", rank.rank},
          {"host", rank.host},
          {"place", rank.place},
          {"step", rank.step},
          {"step_s", rank.step_s},
          {"wait_s", base::or_null(rank.wait_s)},
          {"memory_bytes", rank.memory_bytes},
          {"planned_bytes", rank.planned_bytes},
          {"slowest", rank.slowest}};
}

base::Json run_json(const RunView& view) {
  const RunSample& run = view.run;
  const auto rate = [&](double RunRates::*what) {
    return view.rates ? base::Json((*view.rates).*what) : base::Json(nullptr);
  };
  const auto total = [&](auto RunState::*what) {
    return run.gpu ? base::Json((*run.gpu).*what) : base::Json(nullptr);
  };
  const auto usage = [&](auto ProcessUsage::*what) {
    return run.usage ? base::Json((*run.usage).*what) : base::Json(nullptr);
  };
  const std::optional<TrainingProgress>& training = run.training;
  base::Json devices = base::Json::array();
  for (const DeviceView& device : view.devices) devices.push_back(device_json(device));
  base::Json ranks = base::Json::array();
  for (const RankProgress& rank : run.ranks) ranks.push_back(rank_json(rank));
  return {{"uid", run.uid},
          {"run", base::or_null(run.id)},
          {"title", run.title},
          {"elapsed_seconds", base::or_null(run.elapsed_s)},
          {"processes", usage(&ProcessUsage::processes)},
          {"cpu_percent", base::or_null(view.cpu_percent)},
          {"cpu_seconds", usage(&ProcessUsage::cpu_seconds)},
          {"memory_bytes", usage(&ProcessUsage::memory_bytes)},
          {"step", training ? base::Json(training->step) : base::Json(nullptr)},
          {"loss", training ? base::or_null(training->loss) : base::Json(nullptr)},
          {"tokens_per_s", training ? base::or_null(training->tokens_per_s) : base::Json(nullptr)},
          {"ranks", std::move(ranks)},
          {"gpu_processes", total(&RunState::processes)},
          {"launches", total(&RunState::launches)},
          {"kernels", total(&RunState::kernels)},
          {"copied_bytes", total(&RunState::copied_bytes)},
          {"collectives", total(&RunState::collectives)},
          {"collective_bytes", total(&RunState::collective_bytes)},
          {"refused_allocations", total(&RunState::refused)},
          {"matmuls", total(&RunState::matmuls)},
          {"matmul_flops", total(&RunState::matmul_flops)},
          {"launches_per_s", rate(&RunRates::launches)},
          {"kernels_per_s", rate(&RunRates::kernels)},
          {"copied_bytes_per_s", rate(&RunRates::copied_bytes)},
          {"collectives_per_s", rate(&RunRates::collectives)},
          {"collective_bytes_per_s", rate(&RunRates::collective_bytes)},
          {"matmul_flops_per_s", rate(&RunRates::matmul_flops)},
          {"devices", std::move(devices)}};
}

base::Json gpu_json(const GpuView& view) {
  const machine::GpuActivity& now = view.activity;
  return {{"gpu", short_name(view.name)},
          {"uuid", base::or_null(view.name.uuid)},
          {"name", base::or_null(view.name.name)},
          {"memory_used_bytes", base::or_null(now.memory_used)},
          {"memory_total_bytes", base::or_null(view.name.memory)},
          {"busy_percent", base::or_null(now.busy_percent)},
          {"sm_percent", base::or_null(now.sm_percent)},
          {"occupancy_percent", base::or_null(now.occupancy_percent)},
          {"tensor_percent", base::or_null(now.tensor_percent)},
          {"dram_percent", base::or_null(now.dram_percent)},
          {"pcie_sent_bytes_per_s", base::or_null(now.pcie_sent)},
          {"pcie_received_bytes_per_s", base::or_null(now.pcie_received)},
          {"nvlink_sent_bytes_per_s", base::or_null(now.nvlink_sent)},
          {"nvlink_received_bytes_per_s", base::or_null(now.nvlink_received)},
          {"watts", base::or_null(now.watts)},
          {"clock_mhz", base::or_null(now.clock_mhz)}};
}

}  // namespace

UsageView usage_view(const UsageSample* before, const UsageSample& now) {
  UsageView view;
  if (before != nullptr && now.monotonic_ns > before->monotonic_ns) {
    view.seconds = static_cast<double>(now.monotonic_ns - before->monotonic_ns) / 1e9;
  }
  view.no_gpus = now.no_gpus;
  for (const RunSample& run : now.runs) {
    const RunSample* earlier = same_run(before, run.uid);
    RunView one{.run = run};
    const bool compared = earlier != nullptr && view.seconds > 0;
    if (compared && earlier->gpu && run.gpu) {
      one.rates = rates_between(*earlier->gpu, *run.gpu, view.seconds);
    }
    if (compared && earlier->usage && run.usage) {
      const double used = run.usage->cpu_seconds - earlier->usage->cpu_seconds;
      one.cpu_percent = std::max(0.0, used) / view.seconds * 100;
    }
    if (run.gpu) {
      for (const DeviceState& device : run.gpu->devices) {
        one.devices.push_back(
            device_view(device, same_device(earlier, device.uuid), now, view.seconds));
      }
    }
    view.runs.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < std::min(now.gpus.size(), now.activities.size()); ++i) {
    view.gpus.push_back({now.gpus[i], now.activities[i]});
  }
  return view;
}

base::Json limits_json(const Limits& limits) {
  const bool bytes = limits.bytes && *limits.bytes != wire::kGpuUnlimited;
  const bool share = limits.thousandths && *limits.thousandths < wire::kGpuWholeShare;
  return {
      {"memory_limit_bytes", bytes ? base::Json(*limits.bytes) : base::Json(nullptr)},
      {"compute_limit_percent",
       share ? base::Json(*limits.thousandths / 10.0) : base::Json(nullptr)},
      {"priority", limits.priority ? base::Json(name_of(*limits.priority)) : base::Json(nullptr)},
      {"borrow", base::or_null(limits.borrow)}};
}

base::Json usage_json(const UsageView& view) {
  base::Json runs = base::Json::array();
  for (const RunView& run : view.runs) runs.push_back(run_json(run));
  base::Json gpus = base::Json::array();
  for (const GpuView& gpu : view.gpus) gpus.push_back(gpu_json(gpu));
  return {{"seconds", view.seconds > 0 ? base::Json(view.seconds) : base::Json(nullptr)},
          {"runs", std::move(runs)},
          {"gpus", std::move(gpus)},
          {"no_gpus", base::or_null(view.no_gpus)}};
}

}  // namespace assay::share
