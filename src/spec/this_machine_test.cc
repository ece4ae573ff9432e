// Made-up machines as clusters, and this one as it is.
#include "spec/this_machine.h"

#include <gtest/gtest.h>

#include "spec/load.h"

namespace assay::spec {
namespace {

ClusterSpec cluster_of(const machine::Machine& machine) {
  const auto loaded =
      load(kThisMachine, {.this_machine = [&] { return cluster_document(machine); }});
  EXPECT_TRUE(loaded.has_value()) << loaded.error().line();
  return loaded ? std::get<ClusterSpec>(loaded->spec) : ClusterSpec{};
}

// `group` GPUs each see each other over NVLink.
machine::Machine machine_with_gpus(int count, int group) {
  machine::Machine m;
  m.cpu.model = "Some CPU";
  m.memory = base::Bytes(64LL << 30);
  m.gpu_source = machine::GpuSource::kNvml;
  for (int i = 0; i < count; ++i) {
    machine::Gpu gpu;
    gpu.index = i;
    gpu.name = "NVIDIA H200";
    gpu.memory = base::Bytes(150754820096);
    gpu.pcie = {5, 16, 5, 16};
    gpu.numa_node = i < count / 2 ? 0 : 1;
    if (group > 1) {
      gpu.nvlinks = 18;
      gpu.nvlink_rate = base::BytesPerSecond(25e9);
    }
    m.gpus.push_back(gpu);
    for (int j = 0; j < i; ++j) {
      m.gpu_links.push_back({.a = j, .b = i, .nvlinks = i / group == j / group ? 18 : 0});
    }
  }
  return m;
}

TEST(ThisMachine, WithoutGpusIsOneCpuDevice) {
  machine::Machine m;
  m.cpu.model = "Some CPU";
  m.memory = base::Bytes(64LL << 30);
  m.memory_limit = base::Bytes(8LL << 30);
  const ClusterSpec cluster = cluster_of(m);
  EXPECT_EQ(cluster.devices(), 1);
  EXPECT_EQ(cluster.device.kind, DeviceKind::kCpu);
  EXPECT_EQ(cluster.device.memory, base::Bytes(8LL << 30)) << "the container's limit, not the host";
}

TEST(ThisMachine, KnownGpusTakeTheirRatesFromThePreset) {
  const ClusterSpec cluster = cluster_of(machine_with_gpus(8, 8));
  EXPECT_EQ(cluster.devices(), 8);
  ASSERT_TRUE(cluster.device.bf16.has_value());
  EXPECT_DOUBLE_EQ(cluster.device.bf16->count(), 989.4e12);
  EXPECT_EQ(cluster.device.memory, base::Bytes(150754820096));
  EXPECT_EQ(cluster.link.kind, LinkKind::kNvswitch);
  EXPECT_DOUBLE_EQ(cluster.link.bandwidth->count(), 450e9);
  EXPECT_DOUBLE_EQ(cluster.link.pcie->count(), 64e9);
  EXPECT_EQ(cluster.numa_nodes, 2);
}

TEST(ThisMachine, PairsAndPlainPcieAreToldApart) {
  const ClusterSpec pairs = cluster_of(machine_with_gpus(8, 2));
  EXPECT_EQ(pairs.link.kind, LinkKind::kNvlinkGroups);
  EXPECT_EQ(pairs.link.group, 2);
  const ClusterSpec pcie = cluster_of(machine_with_gpus(4, 1));
  EXPECT_EQ(pcie.link.kind, LinkKind::kPcie);
  EXPECT_DOUBLE_EQ(pcie.link.bandwidth->count(), 64e9);
}

TEST(ThisMachine, GpusThatCannotBeAskedAreStillCounted) {
  machine::Machine m;
  m.gpu_source = machine::GpuSource::kPci;
  m.gpus = {machine::Gpu{.index = 0}, machine::Gpu{.index = 1}};
  m.gpu_links = {{.a = 0, .b = 1}};
  const ClusterSpec cluster = cluster_of(m);
  EXPECT_EQ(cluster.devices(), 2);
  EXPECT_FALSE(cluster.device.memory.has_value());
  EXPECT_EQ(cluster.device.name, "unknown GPU");
}

TEST(ThisMachine, ItselfIsAValidCluster) {
  const auto loaded = load(kThisMachine);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().line();
  EXPECT_GE(std::get<ClusterSpec>(loaded->spec).devices(), 1);
}

}  // namespace
}  // namespace assay::spec
