// Processors, memory, NUMA nodes and drivers of fake machines.
#include "machine/host.h"

#include <gtest/gtest.h>

#include "machine/testing/fake_tree.h"

namespace assay::machine {
namespace {

TEST(Host, TwoSockets) {
  const FakeTree tree;
  tree.add_host(2, 4);
  Notes notes;
  const Cpu cpu = read_cpu(FileTree(tree.root()), notes);
  EXPECT_EQ(cpu.sockets, 2);
  EXPECT_EQ(cpu.cores, 8);
  EXPECT_EQ(cpu.threads, 16);
  EXPECT_EQ(cpu.allowed_threads, 16);
  EXPECT_EQ(cpu.model, "Intel(R) Xeon(R) Platinum 8480C CPU @ 2.00GHz");
  EXPECT_EQ(cpu.features,
            (std::vector<std::string>{"avx", "fma", "avx2", "avx512f", "avx512_bf16", "amx_bf16"}));

  const auto nodes = read_numa_nodes(FileTree(tree.root()), notes);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[1].id, 1);
  EXPECT_EQ(nodes[1].cpus, (std::vector<int>{4, 5, 6, 7, 12, 13, 14, 15}));
  EXPECT_EQ(nodes[1].memory, base::Bytes(1056710656LL * 1024));
  EXPECT_EQ(nodes[1].distances, (std::vector<int>{21, 10}));

  const Os os = read_os(FileTree(tree.root()), notes);
  EXPECT_EQ(os.name, "Ubuntu");
  EXPECT_EQ(os.version, "24.04");
  EXPECT_EQ(os.kernel, "6.8.0-40-generic");
  EXPECT_TRUE(notes.empty());
}

TEST(Host, AffinityCountsOnlyProcessorsThatAreOnline) {
  const FakeTree tree;
  tree.add_host(1, 4);
  tree.write("/proc/self/status", "Cpus_allowed:\tff\nCpus_allowed_list:\t2-5,100-200\n");
  Notes notes;
  EXPECT_EQ(read_cpu(FileTree(tree.root()), notes).allowed_threads, 4);
}

TEST(Host, OldKernelsAndOtherProcessors) {
  const FakeTree tree;
  tree.write("/sys/devices/system/cpu/online", "0-1");
  for (const char* cpu : {"0", "1"}) {
    const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    tree.write(topology + "physical_package_id", "-1");
    tree.write(topology + "thread_siblings_list", cpu);
  }
  tree.write("/proc/cpuinfo",
             "processor\t: 0\nFeatures\t: fp asimd sve bf16\n"
             "CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
  Notes notes;
  const Cpu cpu = read_cpu(FileTree(tree.root()), notes);
  EXPECT_EQ(cpu.sockets, 1);
  EXPECT_EQ(cpu.cores, 2);
  EXPECT_EQ(cpu.model, "arm64 implementer 0x41 part 0xd4f");
  EXPECT_EQ(cpu.features, (std::vector<std::string>{"asimd", "bf16", "sve"}));
}

TEST(Host, NothingThereIsNotedNotGuessed) {
  const FakeTree tree;
  const FileTree files(tree.root());
  Notes notes;
  EXPECT_EQ(read_cpu(files, notes).threads, 0);
  EXPECT_EQ(read_memory(files, notes), base::Bytes());
  EXPECT_TRUE(read_numa_nodes(files, notes).empty());
  EXPECT_EQ(read_hostname(files, notes), "");
  EXPECT_EQ(read_os(files, notes).kernel, "");
  EXPECT_EQ(notes.size(), 8U);
}

TEST(Host, UsableThreadsFollowAffinityAndQuota) {
  Cpu cpu{.threads = 16, .allowed_threads = 12};
  EXPECT_EQ(cpu.usable_threads(), 12);
  cpu.quota_threads = 2.5;
  EXPECT_EQ(cpu.usable_threads(), 3);
  cpu.quota_threads = 0.1;
  EXPECT_EQ(cpu.usable_threads(), 1);
  cpu.quota_threads = 1e300;
  EXPECT_EQ(cpu.usable_threads(), 12);
  EXPECT_EQ(Cpu().usable_threads(), 0);
}

TEST(Host, Modules) {
  const FakeTree tree;
  tree.write("/sys/module/nvidia/version", "580.65.06\n");
  tree.write("/sys/module/mlx5_core/refcnt", "3\n");
  tree.write("/sys/module/unrelated/version", "1\n");
  const std::map<std::string, std::string> expected = {{"nvidia", "580.65.06"}, {"mlx5_core", ""}};
  EXPECT_EQ(read_modules(FileTree(tree.root())), expected);
}

}  // namespace
}  // namespace assay::machine
