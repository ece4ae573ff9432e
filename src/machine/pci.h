// The PCI bus as in sysfs: where GPUs and network adapters are, independent of their drivers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/file_tree.h"
#include "machine/machine.h"

namespace assay::machine {

struct PciDevice {
  std::string bus_id;           // "0000:18:00.0"
  std::int64_t class_code = 0;  // 24 bits: 0x030200 is a 3D controller, 0x068000 an NVSwitch
  std::optional<int> numa_node;
  PcieLink link;
  std::vector<std::string> path;  // from the host bridge ("pci0000:15") to the device itself

  bool is_display() const { return class_code >> 16 == 0x03; }
};

// A bus id in sysfs form, from any other form ("00000000:18:00.0", upper case); empty if the text
// is not a bus id.
std::string sysfs_bus_id(std::string_view text);

std::optional<PciDevice> read_pci_device(const FileTree& tree, const std::string& bus_id);
// NVIDIA display and 3D controllers, in bus order.
std::vector<PciDevice> nvidia_gpus_on_pci(const FileTree& tree);
// The nearest PCI device at or above a sysfs path: adapters may be attached through virtio or a USB
// hub.
std::string bus_id_in_path(std::string_view path);

// `numa_nodes`: how many the machine has; with one, a device's node need not be known.
PciePath pcie_path_between(const PciDevice& a, const PciDevice& b, std::size_t numa_nodes);

}  // namespace assay::machine
