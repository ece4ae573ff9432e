// See pci.h.
#include "machine/pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "machine/parse.h"

namespace assay::machine {
namespace {

constexpr std::string_view kDevices = "/sys/bus/pci/devices/";
constexpr std::int64_t kNvidia = 0x10de;
std::optional<int> read_generation(const FileTree& tree, const std::string& file) {
  const auto text = tree.read(file);
  return text ? parse_pcie_generation(*text) : std::nullopt;
}

// The components from the host bridge on. What is above it (ACPI, a virtual bus) varies.
std::vector<std::string> path_from_host_bridge(const std::string& resolved) {
  std::vector<std::string> path;
  for (const std::string_view component : split(resolved, '/')) {
    const bool bridge = component.starts_with("pci") && component.find(':') != component.npos;
    if (!path.empty() || bridge) path.emplace_back(component);
  }
  return path;
}

}  // namespace

std::string sysfs_bus_id(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() != 3) return {};
  const auto dot = parts[2].find('.');
  if (dot == std::string_view::npos) return {};
  const std::array<std::optional<std::int64_t>, 4> numbers = {
      parse_hex(parts[0]), parse_hex(parts[1]), parse_hex(parts[2].substr(0, dot)),
      parse_hex(parts[2].substr(dot + 1))};
  constexpr std::array<std::int64_t, 4> kMost = {0xffffffff, 0xff, 0x1f, 7};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!numbers[i] || *numbers[i] < 0 || *numbers[i] > kMost[i]) return {};
  }
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", *numbers[0], *numbers[1], *numbers[2],
                     *numbers[3]);
}

std::optional<PciDevice> read_pci_device(const FileTree& tree, const std::string& bus_id) {
  const std::string directory = std::string(kDevices) + bus_id;
  const auto class_text = tree.read(directory + "/class");
  const auto class_code = class_text ? parse_hex(*class_text) : std::nullopt;
  if (!class_code) return std::nullopt;
  PciDevice device{.bus_id = bus_id, .class_code = *class_code};
  device.numa_node = tree.read_small(directory + "/numa_node", 0, 65535);  // -1: unknown
  device.link = {.gen = read_generation(tree, directory + "/current_link_speed"),
                 .width = tree.read_small(directory + "/current_link_width", 1, 64),
                 .max_gen = read_generation(tree, directory + "/max_link_speed"),
                 // 255: a device, usually virtual, that has no PCIe link.
                 .max_width = tree.read_small(directory + "/max_link_width", 1, 64)};
  device.path = path_from_host_bridge(tree.resolve(directory));
  return device;
}

std::vector<PciDevice> nvidia_gpus_on_pci(const FileTree& tree) {
  std::vector<PciDevice> gpus;
  for (const std::string& name : tree.list(std::string(kDevices))) {
    const auto vendor = tree.read(std::string(kDevices) + name + "/vendor");
    if (!vendor || parse_hex(*vendor) != kNvidia) continue;
    auto device = read_pci_device(tree, name);
    if (device && device->is_display()) gpus.push_back(*std::move(device));
  }
  return gpus;
}

std::string bus_id_in_path(std::string_view path) {
  const auto components = split(path, '/');
  for (auto at = components.rbegin(); at != components.rend(); ++at) {
    if (std::string id = sysfs_bus_id(*at); !id.empty()) return id;
  }
  return {};
}

PciePath pcie_path_between(const PciDevice& a, const PciDevice& b, std::size_t numa_nodes) {
  if (a.path.empty() || b.path.empty()) return PciePath::kUnknown;
  const auto [end_a, end_b] =
      std::mismatch(a.path.begin(), a.path.end(), b.path.begin(), b.path.end());
  const auto shared = end_a - a.path.begin();
  if (shared >= 2) {
    // Beyond what they share, one switch leaves a downstream port and the device on each side.
    const bool one_switch = a.path.end() - end_a <= 2 && b.path.end() - end_b <= 2;
    return one_switch ? PciePath::kOneSwitch : PciePath::kSwitches;
  }
  if (shared == 1) return PciePath::kHostBridge;
  if (numa_nodes == 1) return PciePath::kSameNuma;
  if (!a.numa_node || !b.numa_node) return PciePath::kUnknown;
  return *a.numa_node == *b.numa_node ? PciePath::kSameNuma : PciePath::kCrossNuma;
}

}  // namespace assay::machine
