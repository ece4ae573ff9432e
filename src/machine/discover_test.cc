// discover() as a whole: on fake trees, on random bytes, and on this machine compared with other
// sources of the same facts.
#include "machine/discover.h"

#include <gtest/gtest.h>
#include <hwloc.h>
#include <rapidcheck/gtest.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "machine/testing/fake_tree.h"

namespace assay::machine {
namespace {

TEST(Discover, AnEmptyTreeIsAMachineOfWhichNothingIsKnown) {
  const FakeTree tree;
  const Machine machine = discover({.root = tree.root(), .nvml_library = ""});
  EXPECT_EQ(summary(machine), "CPU of unknown model, memory unknown, no GPU");
  EXPECT_FALSE(machine.notes.empty());
  EXPECT_TRUE(to_json(machine)["cpu"]["cores"].is_null());
}

TEST(Discover, LimitsOfTheControlGroup) {
  const FakeTree tree;
  tree.add_host(1, 4);
  tree.write("/proc/self/cgroup", "0::/\n");
  tree.write("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree.write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  tree.write("/sys/fs/cgroup/memory.max", "17179869184\n");
  Machine machine = discover({.root = tree.root(), .nvml_library = ""});
  EXPECT_EQ(machine.cpu.usable_threads(), 2);
  EXPECT_EQ(machine.memory_limit, base::Bytes(17179869184));
  tree.write("/sys/fs/cgroup/memory.max", "9223372036854771712\n");
  machine = discover({.root = tree.root(), .nvml_library = ""});
  EXPECT_EQ(machine.memory_limit, std::nullopt);
}

TEST(Discover, SummariesAndJson) {
  const FakeTree tree;
  tree.add_hgx();
  ::setenv("FAKE_NVML", "nvswitch", 1);
  const Machine machine = discover({.root = tree.root(), .nvml_library = FAKE_NVML});
  EXPECT_EQ(summary(machine),
            "2 × 4-core Intel Xeon Platinum 8480C, 1.97 TiB, 8 × NVIDIA H200 (140 GiB)");
  const base::Json json = to_json(machine);
  EXPECT_EQ(json["hostname"], "node7");
  EXPECT_EQ(json["cpu"]["usable_threads"], 16);
  EXPECT_EQ(json["cpu"]["quota_threads"], nullptr);
  EXPECT_EQ(json["numa_nodes"][1]["cpus"], "4-7,12-15");
  EXPECT_EQ(json["gpus"][0]["memory_bytes"], 150'754'820'096);
  EXPECT_EQ(json["gpus"][0]["compute_capability"], "9.0");
  EXPECT_EQ(json["gpu_links"][0]["nvlinks"], 18);
  EXPECT_EQ(json["gpu_links"].size(), 28U);
  EXPECT_EQ(json["gpu_source"], "nvml");
  EXPECT_TRUE(json["notes"].empty());
}

// Bytes that look a little like what is expected, so that parsers get past their first check.
rc::Gen<std::string> random_text() {
  return rc::gen::container<std::string>(rc::gen::weightedOneOf<char>(
      {{3, rc::gen::arbitrary<char>()}, {2, rc::gen::elementOf(std::string("0129-,:/. \nxkBG"))}}));
}

RC_GTEST_PROP(Discover, RubbishInEveryFileNeverCrashes, ()) {
  const FakeTree tree;
  tree.add_hgx();
  tree.write("/proc/self/cgroup", "0::/a/b\n1:cpu,memory:/c\n");
  tree.write("/proc/self/mountinfo",
             "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
             "32 31 0:29 / /sys/fs/cgroup/v1 rw - cgroup cgroup rw,cpu,memory\n");
  for (const char* file : {"a/b/cpu.max", "memory.max", "v1/c/cpu.cfs_quota_us",
                           "v1/cpu.cfs_period_us", "v1/memory.limit_in_bytes"}) {
    tree.write(std::string("/sys/fs/cgroup/") + file, "1");
  }
  tree.write("/sys/class/infiniband/mlx5_0/ports/1/rate", "1");
  tree.write("/sys/module/nvidia/version", "1");
  for (const std::string& file : tree.files()) {
    if (*rc::gen::inRange(0, 3) != 0) tree.write(file, *random_text());
  }
  const Machine machine = discover({.root = tree.root(), .nvml_library = ""});
  RC_ASSERT(!summary(machine).empty());
  RC_ASSERT(!base::json_text(to_json(machine)).empty());
  RC_ASSERT(machine.memory.count() >= 0);
  RC_ASSERT(machine.cpu.usable_threads() >= 0);
}

TEST(ThisMachine, AgreesWithTheSystemCalls) {
  const Machine machine = discover({.nvml_library = ""});
  EXPECT_EQ(machine.cpu.threads, ::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_EQ(machine.cpu.allowed_threads, CPU_COUNT(&allowed));
  struct sysinfo info {};
  ASSERT_EQ(::sysinfo(&info), 0);
  EXPECT_EQ(machine.memory.count(), static_cast<std::int64_t>(info.totalram) * info.mem_unit);
  struct utsname names {};
  ASSERT_EQ(::uname(&names), 0);
  EXPECT_EQ(machine.hostname, names.nodename);
  EXPECT_EQ(machine.os.kernel, names.release);
  EXPECT_GE(machine.cpu.usable_threads(), 1);
  EXPECT_LE(machine.cpu.usable_threads(), machine.cpu.threads);
#if defined(__x86_64__)
  const auto has = [&](const char* feature) {
    return std::count(machine.cpu.features.begin(), machine.cpu.features.end(), feature) == 1;
  };
  EXPECT_EQ(has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(has("avx512f"), __builtin_cpu_supports("avx512f") != 0);
#endif
}

TEST(ThisMachine, AgreesWithHwloc) {
  hwloc_topology_t topology = nullptr;
  ASSERT_EQ(hwloc_topology_init(&topology), 0);
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  ASSERT_EQ(hwloc_topology_load(topology), 0);
  const Machine machine = discover({.nvml_library = ""});
  EXPECT_EQ(machine.cpu.sockets, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE));
  EXPECT_EQ(machine.cpu.cores, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
  EXPECT_EQ(machine.cpu.threads, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
  EXPECT_EQ(static_cast<int>(machine.numa_nodes.size()),
            hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE));
  hwloc_topology_destroy(topology);
}

}  // namespace
}  // namespace assay::machine
