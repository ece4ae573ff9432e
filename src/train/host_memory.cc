#include "train/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "machine/cgroup.h"
#include "machine/file_tree.h"

namespace assay::train {
namespace {

std::int64_t kib_in(const char* file, const std::string& wanted) {
  std::ifstream facts(file);
  std::string key;
  for (std::string rest; facts >> key && std::getline(facts, rest);) {
    if (key == wanted) return std::strtoll(rest.c_str(), nullptr, 10) * 1024;
  }
  return -1;
}

}  // namespace

std::int64_t unused_host_memory() {
  std::int64_t unused = kib_in("/proc/meminfo", "MemAvailable:");
  if (unused < 0) unused = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  // What others of our group use is not counted, so this is the most it can be.
  const auto limit = machine::read_cgroup_limits(machine::FileTree("/")).memory;
  if (!limit) return unused;
  const std::int64_t ours = std::max<std::int64_t>(0, kib_in("/proc/self/status", "VmRSS:"));
  return std::clamp<std::int64_t>(limit->count() - ours, 0, unused);
}

}  // namespace assay::train
