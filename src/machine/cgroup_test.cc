// Control group limits, as bare hosts, containers and batch systems lay them out.
#include "machine/cgroup.h"

#include <gtest/gtest.h>

#include "machine/testing/fake_tree.h"

namespace assay::machine {
namespace {

constexpr const char* kV2Mount = "31 23 0:28 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";

CgroupLimits limits_of(const FakeTree& tree) {
  return read_cgroup_limits(FileTree(tree.root()));
}

TEST(Cgroup, NothingToRead) {
  const FakeTree tree;
  EXPECT_FALSE(limits_of(tree).memory);
  EXPECT_FALSE(limits_of(tree).cpus);
}

TEST(Cgroup, V2WithoutLimits) {
  const FakeTree tree;
  tree.write("/proc/self/cgroup", "0::/user.slice\n");
  tree.write("/proc/self/mountinfo", kV2Mount);
  tree.write("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  tree.write("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  EXPECT_FALSE(limits_of(tree).memory);
  EXPECT_FALSE(limits_of(tree).cpus);
}

TEST(Cgroup, V2TakesTheTightestOfTheNestedGroups) {
  const FakeTree tree;
  tree.write("/proc/self/cgroup", "0::/system.slice/job_5/step_0\n");
  tree.write("/proc/self/mountinfo", kV2Mount);
  tree.write("/sys/fs/cgroup/system.slice/job_5/step_0/memory.max", "max\n");
  tree.write("/sys/fs/cgroup/system.slice/job_5/step_0/cpu.max", "800000 100000\n");
  tree.write("/sys/fs/cgroup/system.slice/job_5/memory.max", "68719476736\n");
  tree.write("/sys/fs/cgroup/system.slice/job_5/cpu.max", "250000 100000\n");
  tree.write("/sys/fs/cgroup/system.slice/memory.max", "137438953472\n");
  EXPECT_EQ(limits_of(tree).memory, base::Bytes(68719476736));
  EXPECT_EQ(limits_of(tree).cpus, 2.5);
}

TEST(Cgroup, V2InAContainerWhoseMountIsItsOwnGroup) {
  const FakeTree tree;
  // With a group namespace; with a path of the host; with a path outside the namespace.
  for (const char* group : {"0::/\n", "0::/docker/abc\n", "0::/../../other\n"}) {
    tree.write("/proc/self/cgroup", group);
    tree.write("/proc/self/mountinfo",
               "31 23 0:28 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    tree.write("/sys/fs/cgroup/memory.max", "1073741824\n");
    tree.write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    EXPECT_EQ(limits_of(tree).memory, base::Bytes(1073741824)) << group;
    EXPECT_EQ(limits_of(tree).cpus, 0.5) << group;
  }
}

TEST(Cgroup, V1WithSeparateControllers) {
  const FakeTree tree;
  tree.write("/proc/self/cgroup",
             "4:memory:/slurm/job_9\n3:cpuset:/\n2:cpu,cpuacct:/slurm\n0::/\n");
  tree.write("/proc/self/mountinfo",
             "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
             "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
             "34 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  tree.write("/sys/fs/cgroup/memory/slurm/job_9/memory.limit_in_bytes", "2147483648\n");
  tree.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_quota_us", "400000\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_period_us", "100000\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limits_of(tree).memory, base::Bytes(2147483648));
  EXPECT_EQ(limits_of(tree).cpus, 4.0);
}

TEST(Cgroup, NonsenseIsNoLimit) {
  const FakeTree tree;
  tree.write("/proc/self/cgroup", "0::/a\n");
  tree.write("/proc/self/mountinfo", kV2Mount);
  for (const char* text : {"", "0", "-7", "lots", "1 0", "100000", "0 100000", "1 2 3"}) {
    tree.write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_FALSE(limits_of(tree).cpus) << text;
  }
  for (const char* text : {"", "0", "-7", "lots", "99999999999999999999999"}) {
    tree.write("/sys/fs/cgroup/a/memory.max", text);
    EXPECT_FALSE(limits_of(tree).memory) << text;
  }
}

}  // namespace
}  // namespace assay::machine
