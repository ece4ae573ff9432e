#include "train/host_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/process/proc.h"
#include "base/units.h"
#include "machine/cgroup.h"
#include "machine/file_tree.h"

namespace assay::train {
namespace {

// Reserved for other processes.
constexpr std::int64_t kSpare = std::int64_t{1} << 30U;

// -1 if the kernel does not tell.
std::int64_t available_without_swapping() {
  std::ifstream facts("/proc/meminfo");
  std::string key;
  for (std::string rest; facts >> key && std::getline(facts, rest);) {
    if (key == "MemAvailable:") return std::strtoll(rest.c_str(), nullptr, 10) * 1024;
  }
  return -1;
}

}  // namespace

std::int64_t available_host_memory() {
  std::int64_t available = available_without_swapping();
  if (available < 0) available = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  // An upper bound: memory used by other processes of the control group is not known.
  const auto limit = machine::read_cgroup_limits(machine::FileTree("/")).memory;
  if (!limit) return available;
  const std::int64_t own = base::ProcessMemory().now().resident_bytes;
  return std::clamp<std::int64_t>(limit->count() - own, 0, available);
}

base::Result<void> check_snapshots_fit(std::int64_t bytes, int ranks, std::int64_t available) {
  const std::int64_t needed = bytes * ranks;
  if (needed == 0 || needed + kSpare <= available) return {};
  const std::string all = base::to_text(base::Bytes(needed));
  return base::fail(base::unfit_error(
      "host memory",
      fmt::format("a checkpoint needs {}, but {} are available",
                  ranks == 1 ? all : fmt::format("{} for the {} ranks of this machine", all, ranks),
                  base::to_text(base::Bytes(available))),
      "train a smaller model, or on a host with more memory"));
}

}  // namespace assay::train
