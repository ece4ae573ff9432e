// GPUs of fake servers: through a fake driver library, and from the PCI bus alone.
#include "machine/gpu.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include "machine/discover.h"
#include "machine/pci.h"
#include "machine/testing/fake_tree.h"

namespace assay::machine {
namespace {

using ::testing::HasSubstr;

class GpuTest : public ::testing::Test {
 protected:
  // Holding the fake open lets us see whether discovery left it initialised.
  void SetUp() override { fake_ = ::dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL); }
  void TearDown() override {
    ASSERT_NE(fake_, nullptr);
    const auto sessions = reinterpret_cast<int (*)()>(::dlsym(fake_, "fake_nvml_open_sessions"));
    ASSERT_NE(sessions, nullptr);
    EXPECT_EQ(sessions(), 0) << "NVML was left initialised";
    ::dlclose(fake_);
  }

  Machine see(const char* scenario, const std::string& library = FAKE_NVML) {
    ::setenv("FAKE_NVML", scenario, 1);
    return discover({.root = tree_.root(), .nvml_library = library});
  }
  static const GpuLink* link_between(const Machine& machine, int a, int b) {
    const auto [low, high] = std::minmax(a, b);
    for (const GpuLink& link : machine.gpu_links) {
      if (link.a == low && link.b == high) return &link;
    }
    return nullptr;
  }
  static PciePath path(const Machine& machine, int a, int b) {
    const GpuLink* link = link_between(machine, a, b);
    return link == nullptr ? PciePath::kUnknown : link->pcie;
  }

  FakeTree tree_;
  void* fake_ = nullptr;
};

TEST_F(GpuTest, EightGpusOverSwitches) {
  tree_.add_hgx();
  const Machine machine = see("nvswitch");
  EXPECT_EQ(machine.gpu_source, GpuSource::kNvml);
  EXPECT_EQ(machine.drivers.nvidia, "580.65.06");
  EXPECT_EQ(machine.drivers.cuda, "13.0");
  ASSERT_EQ(machine.gpus.size(), 8U);
  const Gpu& gpu = machine.gpus[5];
  EXPECT_EQ(gpu.index, 5);
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_EQ(gpu.uuid, "GPU-00000000-0000-0000-0000-000000000005");
  EXPECT_EQ(gpu.pci_bus_id, "0000:ab:00.0");
  EXPECT_EQ(gpu.memory, base::Bytes(150'754'820'096));
  EXPECT_EQ(gpu.numa_node, 1);
  EXPECT_EQ(gpu.pcie.gen, 1);  // NVML takes precedence over sysfs
  EXPECT_EQ(gpu.pcie.max_gen, 5);
  EXPECT_EQ(gpu.pcie.width, 16);
  EXPECT_EQ(gpu.nvlinks, 18);
  EXPECT_EQ(gpu.nvlink_rate, base::BytesPerSecond(26.562e9));
  EXPECT_EQ(gpu.power_limit, base::Watts(700));
  EXPECT_EQ(gpu.sm_count, 132);
  EXPECT_EQ(gpu.compute->major, 9);
  ASSERT_EQ(machine.gpu_links.size(), 28U);
  for (const GpuLink& link : machine.gpu_links) {
    EXPECT_EQ(link.nvlinks, 18);
    EXPECT_TRUE(link.nvswitch);
  }
  EXPECT_EQ(path(machine, 3, 0), PciePath::kSameNuma);
  EXPECT_EQ(path(machine, 0, 4), PciePath::kCrossNuma);
  EXPECT_EQ(link_between(machine, 2, 2), nullptr);
  EXPECT_TRUE(machine.notes.empty());
}

TEST_F(GpuTest, SwitchesHiddenFromAVirtualMachine) {
  tree_.add_hgx();
  const Machine machine = see("hidden_switch");
  EXPECT_EQ(machine.gpu_links.front().nvlinks, 18);
  EXPECT_TRUE(machine.gpu_links.front().nvswitch);
}

TEST_F(GpuTest, BridgedPairs) {
  tree_.add_hgx();
  const Machine machine = see("pairs");
  EXPECT_EQ(link_between(machine, 0, 1)->nvlinks, 12);
  EXPECT_FALSE(link_between(machine, 0, 1)->nvswitch);
  EXPECT_EQ(link_between(machine, 7, 6)->nvlinks, 12);
  EXPECT_EQ(link_between(machine, 1, 2)->nvlinks, 0);
  EXPECT_EQ(machine.gpus[0].power_limit, base::Watts(400));  // only the older function answers
}

TEST_F(GpuTest, ALostGpuKeepsItsPlace) {
  tree_.add_hgx();
  const Machine machine = see("lost");
  ASSERT_EQ(machine.gpus.size(), 8U);
  EXPECT_EQ(machine.gpus[3].name, "");
  EXPECT_EQ(machine.gpus[4].index, 4);
  EXPECT_EQ(machine.gpus[4].pci_bus_id, "0000:9a:00.0");
  EXPECT_EQ(link_between(machine, 3, 4)->nvlinks, 0);
  EXPECT_THAT(machine.notes.front(), HasSubstr("GPU 3 does not answer: GPU is lost (15)"));
}

TEST_F(GpuTest, AnOldLibraryLeavesTheRestToTheBus) {
  tree_.add_hgx();
  const Machine machine = see("nvswitch", FAKE_NVML_BARE);
  ASSERT_EQ(machine.gpus.size(), 8U);
  EXPECT_EQ(machine.gpu_source, GpuSource::kNvml);
  EXPECT_EQ(machine.gpus[0].memory, std::nullopt);
  EXPECT_EQ(machine.gpus[0].nvlinks, std::nullopt);
  EXPECT_EQ(machine.drivers.cuda, "");
  EXPECT_THAT(machine.notes,
              ::testing::Contains("NVML does not report the memory of GPU 0, 1, 2, 3, 4, 5, 6, 7"));
}

TEST_F(GpuTest, EveryQueryFails) {
  tree_.add_hgx();
  const Machine machine = see("errors");
  EXPECT_EQ(machine.gpus.size(), 8U);
  EXPECT_EQ(machine.gpus[0].nvlinks, std::nullopt);
}

TEST_F(GpuTest, EveryQueryReturnsNonsense) {
  tree_.add_hgx();
  const Machine machine = see("garbage");
  EXPECT_EQ(machine.gpus.size(), 256U);
  EXPECT_EQ(machine.gpus[0].pci_bus_id, "");
  EXPECT_FALSE(machine.gpus[0].compute);
  EXPECT_FALSE(machine.gpus[0].memory);
  EXPECT_FALSE(base::json_text(to_json(machine)).empty());
  EXPECT_EQ(summary(machine).find('\xff'), std::string::npos);
}

TEST_F(GpuTest, WithoutTheDriverTheBusIsLeft) {
  tree_.add_hgx();
  const Machine machine = see("nvswitch", "libassay-no-such-nvml.so.1");
  EXPECT_EQ(machine.gpu_source, GpuSource::kPci);
  ASSERT_EQ(machine.gpus.size(), 8U);
  const Gpu& gpu = machine.gpus[5];
  EXPECT_EQ(gpu.name, "");
  EXPECT_EQ(gpu.pci_bus_id, "0000:ab:00.0");
  EXPECT_EQ(gpu.numa_node, 1);
  EXPECT_EQ(gpu.pcie.gen, 4);
  EXPECT_EQ(gpu.pcie.width, 8);
  EXPECT_EQ(gpu.pcie.max_gen, 5);
  EXPECT_EQ(gpu.pcie.max_width, 16);
  EXPECT_EQ(path(machine, 0, 1), PciePath::kOneSwitch);
  EXPECT_EQ(path(machine, 0, 2), PciePath::kHostBridge);
  EXPECT_EQ(path(machine, 0, 3), PciePath::kSameNuma);
  EXPECT_EQ(path(machine, 0, 4), PciePath::kCrossNuma);
  ASSERT_EQ(machine.notes.size(), 1U);
  EXPECT_THAT(machine.notes[0], HasSubstr("8 NVIDIA devices on the PCI bus but "));
  EXPECT_THAT(machine.notes[0],
              HasSubstr("no NVIDIA driver here (libassay-no-such-nvml.so.1 not found)"));
}

TEST_F(GpuTest, DriversThatDoNotStart) {
  tree_.add_hgx();
  tree_.write("/sys/module/nvidia/version", "535.104.05\n");
  const Machine mismatch = see("mismatch");
  EXPECT_EQ(mismatch.gpu_source, GpuSource::kPci);
  EXPECT_THAT(mismatch.notes.back(), HasSubstr("Driver/library version mismatch (18)"));
  EXPECT_THAT(mismatch.notes.back(), HasSubstr("reload it or reboot"));
  EXPECT_THAT(mismatch.notes.back(), HasSubstr("(kernel module 535.104.05)"));
  EXPECT_THAT(see("driver_not_loaded").notes.back(), HasSubstr("load the nvidia kernel module"));
  EXPECT_THAT(see("no_count").notes.back(), HasSubstr("NVML cannot count the GPUs"));
  EXPECT_THAT(see("none").notes.back(), HasSubstr("but NVML counts no GPU"));
  // Libraries that are not NVML, or do not exist.
  EXPECT_THAT(see("", "libm.so.6").notes.back(), HasSubstr("lacks functions"));
  tree_.write("/broken.so", "not a library");
  EXPECT_THAT(see("", tree_.root() + "/broken.so").notes.back(),
              HasSubstr("no NVIDIA driver here (" + tree_.root()));
}

TEST_F(GpuTest, APartOfTheMachine) {
  tree_.add_hgx();
  tree_.add_pci("pci0000:da/0000:da:03.0", "0000:de:00.0", "0x10de", "0x030200", 1);
  EXPECT_EQ(see("nvswitch").notes.back(), "9 NVIDIA devices on the PCI bus but NVML reports 8");
}

TEST_F(GpuTest, NoGpuIsNothingToExplain) {
  tree_.add_host(1, 2);
  const Machine machine = see("", "libassay-no-such-nvml.so.1");
  EXPECT_EQ(machine.gpu_source, GpuSource::kNone);
  EXPECT_TRUE(machine.gpus.empty());
  EXPECT_TRUE(machine.notes.empty());
}

TEST(Pci, BusIds) {
  EXPECT_EQ(sysfs_bus_id("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(sysfs_bus_id("00010000:01:1f.7"), "10000:01:1f.7");
  for (const char* wrong : {"", "x", "0000:18:00", "0000:100:00.0", "0000:18:20.0", "0000:18:00.8",
                            "-1:18:00.0", "0000:18:00.0 ", "FFFFFFFF:FFFF:FF.F"}) {
    EXPECT_EQ(sysfs_bus_id(wrong), "") << wrong;
  }
  EXPECT_EQ(bus_id_in_path("/sys/devices/pci0000:00/0000:00:03.0/virtio0"), "0000:00:03.0");
  EXPECT_EQ(bus_id_in_path("/sys/devices/platform/x"), "");
}

TEST(Pci, PathsWithoutKnownNodes) {
  const PciDevice a{.path = {"pci0000:00", "0000:01:00.0"}};
  const PciDevice b{.path = {"pci0000:80", "0000:81:00.0"}};
  EXPECT_EQ(pcie_path_between(a, b, 1), PciePath::kSameNuma);
  EXPECT_EQ(pcie_path_between(a, b, 2), PciePath::kUnknown);
  EXPECT_EQ(pcie_path_between(a, {}, 1), PciePath::kUnknown);
  // Switches behind a switch.
  const PciDevice c{.path = {"pci0000:00", "r", "up", "down1", "up1", "down", "gpu1"}};
  const PciDevice d{.path = {"pci0000:00", "r", "up", "down2", "up2", "down", "gpu2"}};
  EXPECT_EQ(pcie_path_between(c, d, 1), PciePath::kSwitches);
}

}  // namespace
}  // namespace assay::machine
