#include "compare/host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "machine/discover.h"
#include "machine/file_tree.h"
#include "machine/parse.h"

namespace assay::compare {
namespace {

using machine::FileTree;

// Below these nothing is reported: a quarter of a processor is housekeeping, 1 % steal is rounding.
constexpr double kMuchOthers = 0.25;
constexpr double kMuchSteal = 0.01;
constexpr double kLoadPerCpu = 0.5;

// Columns of /proc/stat's first line.
constexpr std::size_t kIdle = 3;
constexpr std::size_t kWaiting = 4;
constexpr std::size_t kSteal = 7;
constexpr std::size_t kGuest = 8;  // these and later columns are included in user time

std::int64_t counter(std::string_view text, std::string_view name) {
  for (const std::string_view line : machine::split(text, '\n')) {
    const auto words = machine::split_blanks(line);
    if (words.size() == 2 && words[0] == name) return machine::parse_int(words[1]).value_or(0);
  }
  return 0;
}

void read_processors(const FileTree& tree, HostSample& sample) {
  const auto text = tree.read("/proc/stat", 4096);
  if (!text) return;
  const auto columns = machine::split_blanks(machine::split(*text, '\n').front());
  const double per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (std::size_t i = 1; i < std::min(columns.size(), kGuest + 1); ++i) {
    const double seconds =
        static_cast<double>(machine::parse_int(columns[i]).value_or(0)) / per_second;
    if (i - 1 == kSteal) {
      sample.steal_s = seconds;
    } else if (i - 1 != kIdle && i - 1 != kWaiting) {
      sample.busy_s += seconds;
    }
  }
}

std::string governors(const FileTree& tree, int cpus) {
  std::map<std::string, int> seen;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    const auto governor =
        tree.read(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cpu), 64);
    if (governor && *governor != "performance") ++seen[*governor];
  }
  return seen.empty() ? "" : seen.begin()->first;
}

}  // namespace

HostUsage host_usage(const HostSample& from, const HostSample& to, double own_cpu_s, int cpus) {
  HostUsage s{.seconds = static_cast<double>(to.monotonic_ns - from.monotonic_ns) / 1e9,
              .swapped_pages = to.swapped_pages - from.swapped_pages,
              .throttles = to.throttles - from.throttles,
              .gpu_problems = to.gpu_problems};
  // A GPU that waits for the next run may have cooled down: the counter shows it was throttled.
  for (const auto& [gpu, ns] : to.gpu_hot_ns) {
    const auto before = from.gpu_hot_ns.find(gpu);
    std::string trouble = fmt::format("GPU {}: too hot", gpu);
    if (before != from.gpu_hot_ns.end() && ns > before->second &&
        std::ranges::count(s.gpu_problems, trouble) == 0) {
      s.gpu_problems.push_back(std::move(trouble));
    }
  }
  if (s.seconds <= 0) return s;
  s.others_cpus = std::max(0.0, (to.busy_s - from.busy_s - own_cpu_s) / s.seconds);
  s.steal_share = (to.steal_s - from.steal_s) / (s.seconds * cpus);
  return s;
}

std::vector<std::string> host_problems(const HostUsage& s) {
  std::vector<std::string> problems = s.gpu_problems;
  if (s.others_cpus > kMuchOthers) {
    problems.push_back(fmt::format("other processes used {:.1f} processors", s.others_cpus));
  }
  if (s.steal_share > kMuchSteal) {
    problems.push_back(
        fmt::format("the hypervisor took {:.0f} % of the processor time", 100 * s.steal_share));
  }
  if (s.swapped_pages > 0)
    problems.push_back(fmt::format("{} pages were swapped", s.swapped_pages));
  if (s.throttles > 0) problems.push_back("processors were throttled for heat");
  return problems;
}

Host::Host(std::string root, const std::string& nvml_library) : root_(std::move(root)) {
  const machine::Machine machine = machine::discover({.root = root_, .nvml_library = ""});
  cpus_ = std::max(1, machine.cpu.threads);
  const FileTree tree(root_);
  for (int cpu = 0; cpu < cpus_; ++cpu) {
    std::string file =
        fmt::format("/sys/devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count", cpu);
    if (tree.exists(file)) throttle_files_.push_back(std::move(file));
  }
  for (const machine::Gpu& gpu : machine.gpus) {
    if (auto meter = machine::gpu_meter(gpu.pci_bus_id, nvml_library)) {
      gpus_.push_back({gpu.index, std::move(meter)});
    }
  }
}

HostSample Host::sample() {
  const FileTree tree(root_);
  HostSample sample{.monotonic_ns = base::system_clock().monotonic_ns()};
  read_processors(tree, sample);
  if (const auto counters = tree.read("/proc/vmstat")) {
    sample.swapped_pages = counter(*counters, "pswpin") + counter(*counters, "pswpout");
  }
  for (const std::string& file : throttle_files_) {
    sample.throttles += machine::parse_int(tree.read(file, 64).value_or("")).value_or(0);
  }
  for (const Gpu& gpu : gpus_) {
    const machine::MeterReading reading = gpu.meter->read();
    for (const std::string& trouble :
         machine::throttling_faults(reading.clock_limits.value_or(0))) {
      sample.gpu_problems.push_back(fmt::format("GPU {}: {}", gpu.index, trouble));
    }
    if (reading.too_hot_ns) sample.gpu_hot_ns[gpu.index] = *reading.too_hot_ns;
  }
  return sample;
}

std::vector<std::string> Host::preflight() const {
  const FileTree tree(root_);
  std::vector<std::string> warnings;
  if (const auto text = tree.read("/proc/loadavg", 128)) {
    const auto load = machine::parse_double(machine::split_blanks(*text).front());
    if (load && *load > kLoadPerCpu * cpus_) {
      warnings.push_back(fmt::format("load is {:.1f} on {} processors: other processes are running",
                                     *load, cpus_));
    }
  }
  if (const std::string governor = governors(tree, cpus_); !governor.empty()) {
    warnings.push_back(fmt::format("the frequency governor is '{}', not 'performance'", governor));
  }
  if (const auto memory = tree.read("/proc/meminfo")) {
    const auto total = machine::kib_field(*memory, "SwapTotal");
    const auto free = machine::kib_field(*memory, "SwapFree");
    if (total && free && *free < *total) {
      warnings.push_back(fmt::format("{} are swapped out", base::to_text(*total - *free)));
    }
  }
  for (const Gpu& gpu : gpus_) {
    const machine::MeterReading reading = gpu.meter->read();
    if (reading.clock_mhz) {
      warnings.push_back(
          fmt::format("GPU {}: its clock is {:.0f} MHz and varies with load, heat and power "
                      "unless locked (nvidia-smi --lock-gpu-clocks)",
                      gpu.index, *reading.clock_mhz));
    }
    for (const std::string& trouble :
         machine::throttling_faults(reading.clock_limits.value_or(0))) {
      warnings.push_back(fmt::format("GPU {}: {}", gpu.index, trouble));
    }
  }
  return warnings;
}

}  // namespace assay::compare
