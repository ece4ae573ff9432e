// Processors: counts from sysfs, what the process may use from its affinity mask, model and
// instruction sets from /proc/cpuinfo (which lists only what the kernel lets programs use).
//
// hwloc could count packages and cores as well. Reading the two sysfs files per processor needs no
// library at start-up, writes no warnings to stderr, and works on a pretended tree without changing
// the environment of the process; the tests hold it against hwloc.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "machine/host.h"
#include "machine/parse.h"

namespace assay::machine {
namespace {

// In the order they are reported: x86, then arm64.
constexpr std::array<std::string_view, 23> kFeatures = {
    "avx",      "f16c",        "fma",         "avx2",     "avx512f",  "avx512bw",
    "avx512vl", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "amx_int8",
    "amx_bf16", "amx_fp16",    "avx512_fp16", "asimd",    "asimdhp",  "asimddp",
    "i8mm",     "bf16",        "sve",         "svebf16",  "sve2"};

void count_cores(const FileTree& tree, const std::vector<int>& online, Cpu& cpu) {
  std::set<int> packages;
  std::set<std::string> cores;  // a core is the set of threads on it: ids repeat between dies
  for (const int id : online) {
    const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", id);
    // -1: the firmware does not say; such a machine is taken as one package.
    const auto package = tree.read_small(topology + "physical_package_id", -1, 1 << 24);
    auto siblings = tree.read(topology + "core_cpus_list");
    if (!siblings) siblings = tree.read(topology + "thread_siblings_list");  // before Linux 5.3
    if (package) packages.insert(*package);
    if (siblings) cores.insert(*std::move(siblings));
  }
  cpu.sockets = static_cast<int>(packages.size());
  cpu.cores = static_cast<int>(cores.size());
}

void read_cpuinfo(std::string_view cpuinfo, Cpu& cpu) {
  if (const auto model = field(cpuinfo, "model name")) {
    cpu.model = *model;
  } else if (const auto part = field(cpuinfo, "CPU part")) {
    // arm64 has numbers where x86 has a name.
    cpu.model = fmt::format("arm64 implementer {} part {}",
                            field(cpuinfo, "CPU implementer").value_or("?"), *part);
  }
  auto flags = field(cpuinfo, "flags");
  if (!flags) flags = field(cpuinfo, "Features");
  const auto present = words(flags.value_or(""));
  for (const std::string_view feature : kFeatures) {
    if (std::find(present.begin(), present.end(), feature) != present.end()) {
      cpu.features.emplace_back(feature);
    }
  }
}

// A full mask names processors that could be plugged in; only those online can run anything.
std::optional<int> count_allowed(const FileTree& tree, const std::vector<int>& online) {
  const auto status = tree.read("/proc/self/status");
  const auto list = status ? field(*status, "Cpus_allowed_list") : std::nullopt;
  const auto mask = list ? parse_cpu_list(*list) : std::nullopt;
  if (!mask) return std::nullopt;
  return static_cast<int>(std::count_if(mask->begin(), mask->end(), [&](int id) {
    return online.empty() || std::binary_search(online.begin(), online.end(), id);
  }));
}

}  // namespace

Cpu read_cpu(const FileTree& tree, Notes& notes) {
  Cpu cpu;
  const std::string online_text = tree.read("/sys/devices/system/cpu/online").value_or("");
  const auto online = parse_cpu_list(online_text).value_or(std::vector<int>());
  cpu.threads = static_cast<int>(online.size());
  count_cores(tree, online, cpu);
  if (cpu.threads == 0) {
    notes.emplace_back("processors not counted: no list in /sys/devices/system/cpu");
  } else if (cpu.cores == 0 || cpu.sockets == 0) {
    notes.emplace_back("cores not counted: no topology in /sys/devices/system/cpu");
  }

  if (const auto allowed = count_allowed(tree, online)) {
    cpu.allowed_threads = *allowed;
  } else {
    notes.emplace_back("affinity unknown: no Cpus_allowed_list in /proc/self/status");
  }

  // The first processor's entry is enough, and ends well within this.
  if (const auto cpuinfo = tree.read("/proc/cpuinfo", 16 * 1024)) read_cpuinfo(*cpuinfo, cpu);
  if (cpu.model.empty()) notes.emplace_back("processor model unknown: not in /proc/cpuinfo");
  return cpu;
}

}  // namespace assay::machine
