#include "share/metrics_text.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "base/text.h"

namespace assay::share {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// Invalid UTF-8 is shown, as on a terminal; then backslash, quote and newline as the format wants.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : base::printable(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string label_text(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, escaped(value));
  }
  return text;
}

// One metric with all its samples under one HELP and TYPE, as the format asks for.
class Family {
 public:
  Family(std::string_view name, std::string_view type, std::string_view help)
      : name_(name), head_(fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type)) {}

  void add(const Labels& labels, double value) {
    samples_ += fmt::format("{}{{{}}} {}\n", name_, label_text(labels), value);
  }
  void add(const Labels& labels, std::uint64_t value) {
    samples_ += fmt::format("{}{{{}}} {}\n", name_, label_text(labels), value);
  }
  void append_to(std::string& text) const {
    if (!samples_.empty()) text += head_ + samples_;
  }

 private:
  std::string_view name_;
  std::string head_;
  std::string samples_;
};

Labels gpu_labels(const GpuView& gpu) {
  return {{"gpu", short_name(gpu.name)}, {"uuid", gpu.name.uuid}, {"name", gpu.name.name}};
}

void add_gpus(const View& view, std::string& text) {
  using Value = std::function<std::optional<double>(const GpuView&)>;
  const auto metric = [&](const char* name, const char* help, const Value& value) {
    Family family(name, "gauge", help);
    for (const GpuView& gpu : view.gpus) {
      if (const auto number = value(gpu)) family.add(gpu_labels(gpu), *number);
    }
    family.append_to(text);
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
  metric("assay_gpu_memory_used_bytes", "Memory in use on the GPU, by everybody.",
         [&](const GpuView& gpu) { return bytes(gpu.activity.memory_used); });
  metric("assay_gpu_memory_total_bytes", "Memory of the GPU.",
         [&](const GpuView& gpu) { return bytes(gpu.name.memory); });
  metric("assay_gpu_busy_ratio", "Part of the time in which some kernel ran.",
         share(&Activity::busy_percent));
  metric("assay_gpu_sm_ratio", "Part of the multiprocessors that had work.",
         share(&Activity::sm_percent));
  metric("assay_gpu_occupancy_ratio", "Warps in flight, of the most there can be.",
         share(&Activity::occupancy_percent));
  metric("assay_gpu_tensor_ratio", "Part of the time in which tensor cores worked.",
         share(&Activity::tensor_percent));
  metric("assay_gpu_dram_ratio", "Memory bandwidth in use, of the most there can be.",
         share(&Activity::dram_percent));
  metric("assay_gpu_pcie_sent_bytes_per_second", "Sent by the GPU over PCIe.",
         rate(&Activity::pcie_sent));
  metric("assay_gpu_pcie_received_bytes_per_second", "Received by the GPU over PCIe.",
         rate(&Activity::pcie_received));
  metric("assay_gpu_nvlink_sent_bytes_per_second", "Sent by the GPU over NVLink.",
         rate(&Activity::nvlink_sent));
  metric("assay_gpu_nvlink_received_bytes_per_second", "Received by the GPU over NVLink.",
         rate(&Activity::nvlink_received));
  metric("assay_gpu_power_watts", "Power drawn now.", plain(&Activity::watts));
  metric("assay_gpu_clock_hertz", "Clock of the multiprocessors.",
         [](const GpuView& gpu) -> std::optional<double> {
           const auto& clock = gpu.activity.clock_mhz;
           return clock ? std::optional(*clock * 1e6) : std::nullopt;
         });
}

// The label is not "run": that is the scraper's own, which it would keep and rename ours.
void add_runs(const View& view, std::string& text) {
  const auto metric = [&](const char* name, const char* type, const char* help,
                          const std::function<std::uint64_t(const RunState&)>& value) {
    Family family(name, type, help);
    for (const RunView& run : view.runs) {
      family.add({{"assay_run", run.run.uid}, {"title", run.run.title}}, value(run.run.state));
    }
    family.append_to(text);
  };
  metric("assay_gpu_run_processes", "gauge", "Living processes of the run that use GPUs.",
         [](const RunState& state) { return state.processes; });
  metric("assay_gpu_run_launches_total", "counter", "Kernels and graphs launched by the run.",
         [](const RunState& state) { return state.launches; });
  metric("assay_gpu_run_kernels_total", "counter", "Kernels that ran, those of graphs included.",
         [](const RunState& state) { return state.kernels; });
  metric("assay_gpu_run_copied_bytes_total", "counter", "Bytes copied to, from and on GPUs.",
         [](const RunState& state) { return state.copied_bytes; });
  metric("assay_gpu_run_collectives_total", "counter", "NCCL collectives called by the run.",
         [](const RunState& state) { return state.collectives; });
  metric("assay_gpu_run_collective_bytes_total", "counter", "Bytes of those collectives.",
         [](const RunState& state) { return state.collective_bytes; });
  metric("assay_gpu_run_refused_allocations_total", "counter", "Allocations that were refused.",
         [](const RunState& state) { return state.refused; });
  metric("assay_gpu_run_matmuls_total", "counter", "Matmuls that cuBLAS was called for.",
         [](const RunState& state) { return state.matmuls; });
  Family flops("assay_gpu_run_matmul_flops_total", "counter",
               "Flops of those matmuls, less those that went into graphs.");
  for (const RunView& run : view.runs) {
    flops.add({{"assay_run", run.run.uid}, {"title", run.run.title}}, run.run.state.matmul_flops);
  }
  flops.append_to(text);
}

void add_devices_of_runs(const View& view, std::string& text) {
  const auto metric = [&](const char* name, const char* type, const char* help,
                          const std::function<std::optional<double>(const DeviceState&)>& value) {
    Family family(name, type, help);
    for (const RunView& run : view.runs) {
      for (const DeviceView& device : run.devices) {
        const auto number = value(device.state);
        if (!number) continue;
        family.add({{"assay_run", run.run.uid}, {"gpu", device.gpu}, {"uuid", device.uuid}},
                   *number);
      }
    }
    family.append_to(text);
  };
  metric("assay_gpu_run_memory_used_bytes", "gauge", "Memory of the GPU that the run holds.",
         [](const DeviceState& device) { return static_cast<double>(device.used); });
  metric("assay_gpu_run_memory_limit_bytes", "gauge", "The most that the run may hold.",
         [](const DeviceState& device) -> std::optional<double> {
           if (device.limit == 0) return std::nullopt;
           return static_cast<double>(device.limit);
         });
  metric("assay_gpu_run_compute_limit_ratio", "gauge", "The run's share of the GPU's time.",
         [](const DeviceState& device) -> std::optional<double> {
           if (device.share.thousandths >= wire::kGpuWholeShare) return std::nullopt;
           return device.share.thousandths / 1e3;
         });
  metric("assay_gpu_run_had_seconds_total", "counter", "Time on the GPU that the run has had.",
         [](const DeviceState& device) { return static_cast<double>(device.busy_ns) / 1e9; });
  metric("assay_gpu_run_waited_seconds_total", "counter",
         "Time that threads of the run waited for a turn.",
         [](const DeviceState& device) { return static_cast<double>(device.waited_ns) / 1e9; });
}

}  // namespace

std::string metrics_text(const View& view) {
  std::string text = "# HELP assay_gpu_runs Runs that are running.\n# TYPE assay_gpu_runs gauge\n";
  text += fmt::format("assay_gpu_runs {}\n", view.runs.size());
  add_gpus(view, text);
  add_runs(view, text);
  add_devices_of_runs(view, text);
  return text;
}

}  // namespace assay::share
