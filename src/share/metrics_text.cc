#include "share/metrics_text.h"

#include <algorithm>
#include <functional>

#include "base/prometheus.h"

namespace assay::share {
namespace {

using base::MetricFamily;
using base::MetricLabels;
using base::MetricType;

MetricLabels gpu_labels(const GpuView& gpu) {
  return {{"gpu", short_name(gpu.name)}, {"uuid", gpu.name.uuid}, {"name", gpu.name.name}};
}

void add_gpus(const UsageView& view, std::string& text) {
  using Value = std::function<std::optional<double>(const GpuView&)>;
  const auto metric = [&](const char* name, const char* help, const Value& value) {
    MetricFamily family(name, MetricType::kGauge, help);
    for (const GpuView& gpu : view.gpus) {
      if (const auto number = value(gpu)) family.add(gpu_labels(gpu), *number);
    }
    text += family.text();
  };
  const auto share = [](std::optional<double> machine::GpuActivity::*member) {
    return [member](const GpuView& gpu) -> std::optional<double> {
      const auto& percent = gpu.activity.*member;
      return percent ? std::optional(*percent / 100) : std::nullopt;
    };
  };
  const auto rate = [](std::optional<base::BytesPerSecond> machine::GpuActivity::*member) {
    return [member](const GpuView& gpu) -> std::optional<double> {
      const auto& value = gpu.activity.*member;
      return value ? std::optional(value->count()) : std::nullopt;
    };
  };
  const auto plain = [](std::optional<double> machine::GpuActivity::*member) {
    return [member](const GpuView& gpu) { return gpu.activity.*member; };
  };
  const auto bytes = [](const std::optional<base::Bytes>& size) -> std::optional<double> {
    return size ? std::optional(static_cast<double>(size->count())) : std::nullopt;
  };
  using Activity = machine::GpuActivity;
  metric("assay_gpu_memory_used_bytes", "Memory in use on the GPU, by all processes.",
         [&](const GpuView& gpu) { return bytes(gpu.activity.memory_used); });
  metric("assay_gpu_memory_total_bytes", "Memory of the GPU.",
         [&](const GpuView& gpu) { return bytes(gpu.name.memory); });
  metric("assay_gpu_busy_ratio", "Fraction of the time in which a kernel was running.",
         share(&Activity::busy_percent));
  metric("assay_gpu_sm_ratio", "Fraction of the multiprocessors with work.",
         share(&Activity::sm_percent));
  metric("assay_gpu_occupancy_ratio", "Resident warps, as a fraction of the maximum.",
         share(&Activity::occupancy_percent));
  metric("assay_gpu_tensor_ratio", "Fraction of the time in which tensor cores were active.",
         share(&Activity::tensor_percent));
  metric("assay_gpu_dram_ratio", "Memory bandwidth used, as a fraction of the peak.",
         share(&Activity::dram_percent));
  metric("assay_gpu_pcie_sent_bytes_per_second", "Sent by the GPU over PCIe.",
         rate(&Activity::pcie_sent));
  metric("assay_gpu_pcie_received_bytes_per_second", "Received by the GPU over PCIe.",
         rate(&Activity::pcie_received));
  metric("assay_gpu_nvlink_sent_bytes_per_second", "Sent by the GPU over NVLink.",
         rate(&Activity::nvlink_sent));
  metric("assay_gpu_nvlink_received_bytes_per_second", "Received by the GPU over NVLink.",
         rate(&Activity::nvlink_received));
  metric("assay_gpu_power_watts", "Power draw.", plain(&Activity::watts));
  metric("assay_gpu_clock_hertz", "Clock of the multiprocessors.",
         [](const GpuView& gpu) -> std::optional<double> {
           const auto& clock = gpu.activity.clock_mhz;
           return clock ? std::optional(*clock * 1e6) : std::nullopt;
         });
}

MetricLabels run_labels(const RunSample& run) {
  return {{"assay_run", run.uid}, {"title", run.title}};
}

// Metrics of every running run, with or without GPUs.
void add_runs(const UsageView& view, std::string& text) {
  const auto metric = [&](const char* name, MetricType type, const char* help,
                          const std::function<std::optional<double>(const RunSample&)>& value) {
    MetricFamily family(name, type, help);
    for (const RunView& run : view.runs) {
      if (const auto number = value(run.run)) family.add(run_labels(run.run), *number);
    }
    text += family.text();
  };
  const auto usage = [](auto ProcessUsage::*member) {
    return [member](const RunSample& run) -> std::optional<double> {
      if (!run.usage) return std::nullopt;
      return static_cast<double>((*run.usage).*member);
    };
  };
  metric("assay_run_ran_seconds", MetricType::kGauge, "Time since the run started.",
         [](const RunSample& run) { return run.elapsed_s; });
  metric("assay_run_processes", MetricType::kGauge, "Processes of the run.",
         usage(&ProcessUsage::processes));
  metric("assay_run_cpu_seconds_total", MetricType::kCounter, "CPU time used by the run.",
         usage(&ProcessUsage::cpu_seconds));
  metric("assay_run_memory_bytes", MetricType::kGauge, "Resident memory of the run's processes.",
         usage(&ProcessUsage::memory_bytes));
  metric("assay_run_step", MetricType::kGauge, "The last training step that was measured.",
         [](const RunSample& run) -> std::optional<double> {
           if (!run.training) return std::nullopt;
           return static_cast<double>(run.training->step);
         });
  metric("assay_run_loss", MetricType::kGauge, "Training loss.",
         [](const RunSample& run) { return run.training ? run.training->loss : std::nullopt; });
  metric("assay_run_tokens_per_s", MetricType::kGauge, "Training throughput.",
         [](const RunSample& run) {
           return run.training ? run.training->tokens_per_s : std::nullopt;
         });
}

void add_gpu_runs(const UsageView& view, std::string& text) {
  const auto metric = [&](const char* name, MetricType type, const char* help, auto value) {
    MetricFamily family(name, type, help);
    for (const RunView& run : view.runs) {
      if (run.run.gpu) family.add(run_labels(run.run), (*run.run.gpu).*value);
    }
    text += family.text();
  };
  metric("assay_gpu_run_processes", MetricType::kGauge, "Processes of the run that use GPUs.",
         &RunState::processes);
  metric("assay_gpu_run_launches_total", MetricType::kCounter,
         "Kernels and graphs launched by the run.", &RunState::launches);
  metric("assay_gpu_run_kernels_total", MetricType::kCounter,
         "Kernels executed, including those in graphs.", &RunState::kernels);
  metric("assay_gpu_run_copied_bytes_total", MetricType::kCounter,
         "Bytes copied to, from and on GPUs.", &RunState::copied_bytes);
  metric("assay_gpu_run_collectives_total", MetricType::kCounter,
         "NCCL collectives called by the run.", &RunState::collectives);
  metric("assay_gpu_run_collective_bytes_total", MetricType::kCounter,
         "Bytes of those collectives.", &RunState::collective_bytes);
  metric("assay_gpu_run_refused_allocations_total", MetricType::kCounter,
         "Allocations that were refused.", &RunState::refused);
  metric("assay_gpu_run_matmuls_total", MetricType::kCounter, "Calls of cuBLAS.",
         &RunState::matmuls);
  metric("assay_gpu_run_matmul_flops_total", MetricType::kCounter,
         "Flops of those matmuls, without those captured into graphs.", &RunState::matmul_flops);
}

void add_devices_of_runs(const UsageView& view, std::string& text) {
  const auto metric = [&](const char* name, MetricType type, const char* help,
                          const std::function<std::optional<double>(const DeviceState&)>& value) {
    MetricFamily family(name, type, help);
    for (const RunView& run : view.runs) {
      for (const DeviceView& device : run.devices) {
        const auto number = value(device.state);
        if (!number) continue;
        family.add({{"assay_run", run.run.uid}, {"gpu", device.gpu}, {"uuid", device.uuid}},
                   *number);
      }
    }
    text += family.text();
  };
  metric("assay_gpu_run_memory_used_bytes", MetricType::kGauge, "GPU memory held by the run.",
         [](const DeviceState& device) { return static_cast<double>(device.used); });
  metric("assay_gpu_run_memory_limit_bytes", MetricType::kGauge, "GPU memory limit of the run.",
         [](const DeviceState& device) -> std::optional<double> {
           if (device.limit == 0) return std::nullopt;
           return static_cast<double>(device.limit);
         });
  metric("assay_gpu_run_compute_limit_ratio", MetricType::kGauge,
         "The run's share of the GPU's time.",
         [](const DeviceState& device) -> std::optional<double> {
           if (device.share.thousandths >= wire::kGpuWholeShare) return std::nullopt;
           return device.share.thousandths / 1e3;
         });
  metric("assay_gpu_run_busy_seconds_total", MetricType::kCounter, "GPU time used by the run.",
         [](const DeviceState& device) { return static_cast<double>(device.busy_ns) / 1e9; });
  metric("assay_gpu_run_waited_seconds_total", MetricType::kCounter,
         "Time that threads of the run waited for their share.",
         [](const DeviceState& device) { return static_cast<double>(device.waited_ns) / 1e9; });
}

}  // namespace

std::string metrics_text(const UsageView& view) {
  MetricFamily runs("assay_runs", MetricType::kGauge, "Runs that are running.");
  runs.add({}, std::uint64_t{view.runs.size()});
  MetricFamily gpu_runs("assay_gpu_runs", MetricType::kGauge, "Runs whose GPU work is counted.");
  gpu_runs.add({}, static_cast<std::uint64_t>(
                       std::count_if(view.runs.begin(), view.runs.end(),
                                     [](const RunView& run) { return run.run.gpu.has_value(); })));
  std::string text = runs.text() + gpu_runs.text();
  add_gpus(view, text);
  add_runs(view, text);
  add_gpu_runs(view, text);
  add_devices_of_runs(view, text);
  return text;
}

}  // namespace assay::share
