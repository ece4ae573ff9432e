// Finds the groups (/proc/self/cgroup), where their hierarchies are mounted (/proc/self/mountinfo),
// and reads the limits from the process's group up to the mount point: a parent's limit binds its
// children, and a container often sees its limit only at the mount point.
#include "machine/cgroup.h"

#include <algorithm>
#include <climits>
#include <string>
#include <string_view>
#include <vector>

#include "machine/parse.h"

namespace assay::machine {
namespace {

struct Hierarchy {
  std::string root;   // the group that is visible at `point`
  std::string point;  // where it is mounted
  bool v2 = false;
  std::vector<std::string_view> controllers;  // version 1 only
};

// "31 23 0:28 /root /point options… - cgroup source rw,cpu,cpuacct"
std::vector<Hierarchy> mounted_hierarchies(std::string_view mountinfo) {
  std::vector<Hierarchy> found;
  for (const std::string_view line : split(mountinfo, '\n')) {
    const auto separator = line.find(" - ");
    if (separator == std::string_view::npos) continue;
    const auto before = split_blanks(line.substr(0, separator));
    const auto after = split_blanks(line.substr(separator + 3));
    if (before.size() < 5 || after.size() < 3) continue;
    if (after[0] != "cgroup" && after[0] != "cgroup2") continue;
    found.push_back({.root = std::string(before[3]),
                     .point = std::string(before[4]),
                     .v2 = after[0] == "cgroup2",
                     .controllers = split(after[2], ',')});
  }
  return found;
}

// "4:memory:/a/b" in version 1, "0::/a/b" in version 2. The path of the group, "" when not listed.
std::string own_group(std::string_view groups, bool v2, std::string_view controller) {
  for (const std::string_view line : split(groups, '\n')) {
    const auto first = line.find(':');
    const auto second = line.find(':', first == std::string_view::npos ? first : first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    const auto listed = split(names, ',');
    const bool matches = v2 ? line.starts_with("0:") && names.empty()
                            : std::find(listed.begin(), listed.end(), controller) != listed.end();
    if (matches) return std::string(line.substr(second + 1));
  }
  return {};
}

// The group's directory and those above it, down to the mount point, nearest first.
std::vector<std::string> group_directories(const Hierarchy& hierarchy, std::string group) {
  // Without a group namespace the path is the host's and starts with what is mounted here.
  if (hierarchy.root != "/" && (group + '/').starts_with(hierarchy.root + '/')) {
    group.erase(0, hierarchy.root.size());
  }
  // A path with ".." is a group outside the namespace: only the mount point can be read.
  if (!group.starts_with('/') || group.find("/..") != std::string::npos ||
      group.size() > PATH_MAX) {
    group.clear();
  }
  std::vector<std::string> directories;
  for (; group.size() > 1; group.erase(group.rfind('/'))) {
    directories.push_back(hierarchy.point + group);
  }
  directories.push_back(hierarchy.point);
  return directories;
}

template <class T>
void keep_lower(std::optional<T>& lowest, T value) {
  if (!lowest || value < *lowest) lowest = value;
}

void read_memory(const FileTree& tree, const std::string& file, CgroupLimits& limits) {
  const auto text = tree.read(file);
  const auto bytes = text ? parse_int(*text) : std::nullopt;  // "max" is not a number
  if (bytes && *bytes > 0) keep_lower(limits.memory, base::Bytes(*bytes));
}

void keep_quota(std::string_view quota, std::string_view period, CgroupLimits& limits) {
  const auto quota_us = parse_int(quota);  // "max" or -1 when there is none
  const auto period_us = parse_int(period);
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return;
  keep_lower(limits.cpus, static_cast<double>(*quota_us) / static_cast<double>(*period_us));
}

void read_v2(const FileTree& tree, const std::string& directory, CgroupLimits& limits) {
  read_memory(tree, directory + "/memory.max", limits);
  if (const auto text = tree.read(directory + "/cpu.max")) {
    const auto parts = split_blanks(*text);
    if (parts.size() == 2) keep_quota(parts[0], parts[1], limits);
  }
}

void read_v1_cpu(const FileTree& tree, const std::string& directory, CgroupLimits& limits) {
  const auto quota = tree.read(directory + "/cpu.cfs_quota_us");
  const auto period = tree.read(directory + "/cpu.cfs_period_us");
  if (quota && period) keep_quota(*quota, *period, limits);
}

}  // namespace

CgroupLimits read_cgroup_limits(const FileTree& tree) {
  CgroupLimits limits;
  const auto groups = tree.read("/proc/self/cgroup");
  const auto mounts = tree.read("/proc/self/mountinfo", 4 * 1024 * 1024);
  if (!groups || !mounts) return limits;

  const auto has = [](const Hierarchy& hierarchy, std::string_view controller) {
    const auto& all = hierarchy.controllers;
    return !hierarchy.v2 && std::find(all.begin(), all.end(), controller) != all.end();
  };
  for (const Hierarchy& hierarchy : mounted_hierarchies(*mounts)) {
    const auto directories = [&](std::string_view controller) {
      return group_directories(hierarchy, own_group(*groups, hierarchy.v2, controller));
    };
    if (hierarchy.v2) {
      for (const auto& directory : directories({})) read_v2(tree, directory, limits);
    }
    if (has(hierarchy, "memory")) {
      for (const auto& directory : directories("memory")) {
        read_memory(tree, directory + "/memory.limit_in_bytes", limits);
      }
    }
    if (has(hierarchy, "cpu")) {
      for (const auto& directory : directories("cpu")) read_v1_cpu(tree, directory, limits);
    }
  }
  return limits;
}

}  // namespace assay::machine
