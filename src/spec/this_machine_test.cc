// Made-up machines as clusters, link graphs drawn by hand, and this machine as it is.
#include "spec/this_machine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <optional>

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
      const bool linked = i / group == j / group;
      m.gpu_links.push_back(
          {.a = j, .b = i, .nvlinks = linked ? 18 : 0, .nvswitch = linked && group > 2});
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

TEST(ThisMachine, PairsAndPlainPcieAreDistinguished) {
  const ClusterSpec pairs = cluster_of(machine_with_gpus(8, 2));
  EXPECT_EQ(pairs.link.kind, LinkKind::kNvlinkGroups);
  EXPECT_EQ(pairs.link.group, 2);
  const ClusterSpec pcie = cluster_of(machine_with_gpus(4, 1));
  EXPECT_EQ(pcie.link.kind, LinkKind::kPcie);
  EXPECT_DOUBLE_EQ(pcie.link.bandwidth->count(), 64e9);
}

TEST(ThisMachine, GpusThatCannotBeQueriedAreStillCounted) {
  machine::Machine m;
  m.gpu_source = machine::GpuSource::kPci;
  m.gpus = {machine::Gpu{.index = 0}, machine::Gpu{.index = 1}};
  m.gpu_links = {{.a = 0, .b = 1}};
  const ClusterSpec cluster = cluster_of(m);
  EXPECT_EQ(cluster.devices(), 2);
  EXPECT_FALSE(cluster.device.memory.has_value());
  EXPECT_EQ(cluster.device.name, "unknown GPU");
}

TEST(ThisMachine, OfSeveralModelsTakesTheFirst) {
  machine::Machine m = machine_with_gpus(4, 1);
  m.gpus[1].name = "NVIDIA T4";
  m.gpus[3].name = "NVIDIA T4";
  m.gpu_links[1].nvlinks = 18;  // 0 and 2: a bridge between the two that are taken
  m.gpus[0].nvlink_rate = base::BytesPerSecond(25e9);
  const auto loaded = load(kThisMachine, {.this_machine = [&] { return cluster_document(m); }});
  ASSERT_TRUE(loaded.has_value()) << loaded.error().line();
  const auto& cluster = std::get<ClusterSpec>(loaded->spec);
  EXPECT_EQ(cluster.devices_per_node, 2);
  EXPECT_EQ(cluster.link.kind, LinkKind::kNvlinkMesh);
  EXPECT_DOUBLE_EQ(cluster.link.bandwidth->count(), 450e9);
  EXPECT_TRUE(loaded->description.ends_with("; taken as 2 x NVIDIA H200")) << loaded->description;
}

// Numbers that hardware has, and those that broken firmware reports.
std::int64_t any_count() {
  return *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(-2, 20),
                         rc::gen::arbitrary<std::int64_t>());
}
double any_rate() {
  return *rc::gen::oneOf(
      rc::gen::element(0.0, -1.0, 0.5, 25e9, 1e17, 1e300, std::nan(""), HUGE_VAL),
      rc::gen::arbitrary<double>());
}
int any_int() {
  return static_cast<int>(any_count() % 1'000'000);
}
template <class T>
std::optional<T> maybe(T value) {
  return *rc::gen::arbitrary<bool>() ? std::optional(value) : std::nullopt;
}
std::string any_name() {
  return *rc::gen::oneOf(rc::gen::element<std::string>("", " ", "NVIDIA H200", "NVIDIA T4",
                                                       "\x1b[2J", "a\nb", "\xff", "'\"\\"),
                         rc::gen::arbitrary<std::string>());
}

machine::Gpu any_gpu(const std::string& usual_name) {
  machine::Gpu gpu;
  gpu.name = *rc::gen::inRange(0, 4) == 0 ? any_name() : usual_name;
  gpu.memory = maybe(base::Bytes(any_count()));
  gpu.numa_node = maybe(any_int());
  gpu.pcie.max_gen = maybe(any_int());
  gpu.pcie.max_width = maybe(any_int());
  gpu.nvlinks = maybe(any_int());
  gpu.nvlink_rate = maybe(base::BytesPerSecond(any_rate()));
  gpu.power_limit = maybe(base::Watts(any_rate()));
  return gpu;
}

machine::Machine any_machine() {
  machine::Machine m;
  m.cpu.model = any_name();
  m.cpu.threads = any_int();
  m.cpu.allowed_threads = any_int();
  m.cpu.quota_threads = maybe(any_rate());
  m.memory = base::Bytes(any_count());
  m.memory_limit = maybe(base::Bytes(any_count()));
  const int gpus = *rc::gen::inRange(0, 10);
  const std::string name = any_name();
  const bool switches = *rc::gen::arbitrary<bool>();
  const int group = *rc::gen::inRange(1, 10);
  const bool tidy = *rc::gen::arbitrary<bool>();
  for (int i = 0; i < gpus; ++i) {
    m.gpus.push_back(any_gpu(name));
    for (int j = 0; j < i; ++j) {
      const int nvlinks = tidy ? (i / group == j / group ? 4 : 0) : *rc::gen::inRange(-1, 3);
      if (!tidy && *rc::gen::inRange(0, 8) == 0) continue;
      m.gpu_links.push_back({.a = j, .b = i, .nvlinks = nvlinks, .nvswitch = switches});
    }
  }
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    machine::Nic nic;
    nic.kind = *rc::gen::element(machine::NicKind::kEthernet, machine::NicKind::kRoce,
                                 machine::NicKind::kInfiniband, machine::NicKind::kEfa);
    nic.rate = maybe(base::BytesPerSecond(any_rate()));
    nic.up = maybe(*rc::gen::arbitrary<bool>());
    m.nics.push_back(nic);
  }
  return m;
}

RC_GTEST_PROP(ThisMachineProperty, AnyMachineIsAValidCluster, ()) {
  const machine::Machine m = any_machine();
  const auto document = [&] { return cluster_document(m); };
  const auto cluster = load(kThisMachine, {.this_machine = document});
  if (!cluster) RC_FAIL(cluster.error().line());
  RC_ASSERT(cluster->kind() == Kind::kCluster);
  const auto job = load("demo", {.this_machine = document});
  if (!job) RC_FAIL(job.error().line());
  const auto& spec = std::get<JobSpec>(job->spec);
  RC_ASSERT(spec.layout.ranks == std::get<ClusterSpec>(cluster->spec).devices());
}

TEST(ThisMachine, ItselfIsAValidCluster) {
  const auto loaded = load(kThisMachine);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().line();
  EXPECT_GE(std::get<ClusterSpec>(loaded->spec).devices(), 1);
}

struct Edge {
  int a;
  int b;
  int nvlinks;
  bool nvswitch = false;
};

NodeLinks links_of(int gpus, const std::vector<Edge>& edges) {
  machine::Machine machine;
  std::vector<int> all;
  for (int i = 0; i < gpus; ++i) all.push_back(i);
  for (const Edge& edge : edges) {
    machine.gpu_links.push_back(
        {.a = edge.a, .b = edge.b, .nvlinks = edge.nvlinks, .nvswitch = edge.nvswitch});
  }
  return node_links(machine, all);
}

TEST(NodeLinks, SwitchesServeEveryPair) {
  const NodeLinks links = links_of(3, {{0, 1, 18, true}, {0, 2, 18, true}, {1, 2, 18, true}});
  EXPECT_EQ(links.kind, LinkKind::kNvswitch);
  EXPECT_EQ(links.nvlinks, 18);
}

TEST(NodeLinks, DirectLinksToAllAddUp) {
  // Four A100 of a DGX Station: four links to each of the three others.
  const NodeLinks links =
      links_of(4, {{0, 1, 4}, {0, 2, 4}, {0, 3, 4}, {1, 2, 4}, {1, 3, 4}, {2, 3, 4}});
  EXPECT_EQ(links.kind, LinkKind::kNvlinkMesh);
  EXPECT_EQ(links.nvlinks, 12);
  EXPECT_EQ(links_of(2, {{0, 1, 12}}).kind, LinkKind::kNvlinkMesh) << "a bridge";
  EXPECT_EQ(links_of(3, {{0, 1, 2}, {0, 2, 2}, {1, 2, 1}}).nvlinks, 3) << "the least connected";
}

TEST(NodeLinks, EqualCompleteGroupsAreGroups) {
  const NodeLinks pairs = links_of(4, {{0, 3, 12}, {1, 2, 12}, {0, 1, 0}});
  EXPECT_EQ(pairs.kind, LinkKind::kNvlinkGroups);
  EXPECT_EQ(pairs.group, 2);
  EXPECT_EQ(pairs.nvlinks, 12);
}

TEST(NodeLinks, AnythingElseIsPcie) {
  EXPECT_EQ(links_of(4, {}).kind, LinkKind::kPcie);
  EXPECT_EQ(links_of(3, {{0, 1, 12}}).kind, LinkKind::kPcie) << "one is left over";
  EXPECT_EQ(links_of(3, {{0, 1, 12}, {1, 2, 12}}).kind, LinkKind::kPcie) << "a chain";
  EXPECT_EQ(links_of(4, {{0, 1, 2}, {1, 2, 2}, {2, 3, 2}, {0, 3, 2}}).kind, LinkKind::kPcie)
      << "a ring";
  EXPECT_EQ(links_of(5, {{0, 1, 2}, {2, 3, 2}, {2, 4, 2}, {3, 4, 2}}).kind, LinkKind::kPcie)
      << "a pair and a triangle";
  EXPECT_EQ(links_of(2, {{0, 7, 12}, {-1, 1, 12}, {1, 1, 12}, {0, 1, -4}}).kind, LinkKind::kPcie)
      << "links of nowhere";
}

}  // namespace

}  // namespace assay::spec
