// See gpu.h.
#include "machine/gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "machine/nvml.h"
#include "machine/pci.h"

namespace assay::machine {
namespace {

// The driver takes precedence; the bus fills in what it does not report.
void add_pci_facts(const PciDevice& device, Gpu& gpu) {
  if (!gpu.numa_node) gpu.numa_node = device.numa_node;
  if (!gpu.pcie.gen) gpu.pcie.gen = device.link.gen;
  if (!gpu.pcie.width) gpu.pcie.width = device.link.width;
  if (!gpu.pcie.max_gen) gpu.pcie.max_gen = device.link.max_gen;
  if (!gpu.pcie.max_width) gpu.pcie.max_width = device.link.max_width;
}

// If NVML does not report the far end's type, the PCI bus may. A device unknown to both is assumed
// to be a switch, because virtual machines are given GPUs but not the switches between them.
bool leads_to_switch(const FileTree& tree, const NvlinkEnd& end) {
  if (end.remote != NvlinkEnd::Remote::kUnknown) return end.remote == NvlinkEnd::Remote::kSwitch;
  const auto device = read_pci_device(tree, end.bus_id);
  return !device || !device->is_display();
}

void add_nvlinks(const FileTree& tree, const std::vector<NvmlGpu>& gpus, GpuLink& link) {
  const NvmlGpu& a = gpus[static_cast<std::size_t>(link.a)];
  const NvmlGpu& b = gpus[static_cast<std::size_t>(link.b)];
  const auto direct = std::count_if(a.nvlinks.begin(), a.nvlinks.end(), [&](const auto& end) {
    return !end.bus_id.empty() && end.bus_id == b.gpu.pci_bus_id;
  });
  if (direct > 0) {
    link.nvlinks = static_cast<int>(direct);
    return;
  }
  const auto switched = [&](const NvmlGpu& gpu) {
    return std::count_if(gpu.nvlinks.begin(), gpu.nvlinks.end(),
                         [&](const auto& end) { return leads_to_switch(tree, end); });
  };
  link.nvlinks = static_cast<int>(std::min(switched(a), switched(b)));
  link.nvswitch = link.nvlinks > 0;
}

void take_nvml(const FileTree& tree, const NvmlAnswer& answer, Machine& machine) {
  machine.gpu_source = answer.gpus.empty() ? GpuSource::kNone : GpuSource::kNvml;
  machine.notes.insert(machine.notes.end(), answer.notes.begin(), answer.notes.end());

  std::vector<PciDevice> places;
  for (const auto& [gpu, nvlinks] : answer.gpus) {
    places.push_back(read_pci_device(tree, gpu.pci_bus_id).value_or(PciDevice()));
    machine.gpus.push_back(gpu);
    add_pci_facts(places.back(), machine.gpus.back());
  }
  for (GpuLink link : answer.pairs) {
    if (link.pcie == PciePath::kUnknown) {
      link.pcie =
          pcie_path_between(places[static_cast<std::size_t>(link.a)],
                            places[static_cast<std::size_t>(link.b)], machine.numa_nodes.size());
    }
    add_nvlinks(tree, answer.gpus, link);
    machine.gpu_links.push_back(link);
  }
}

void take_pci(const std::vector<PciDevice>& devices, Machine& machine) {
  machine.gpu_source = devices.empty() ? GpuSource::kNone : GpuSource::kPci;
  for (std::size_t a = 0; a < devices.size(); ++a) {
    machine.gpus.push_back({.index = static_cast<int>(a), .pci_bus_id = devices[a].bus_id});
    add_pci_facts(devices[a], machine.gpus.back());
    for (std::size_t b = a + 1; b < devices.size(); ++b) {
      machine.gpu_links.push_back(
          {.a = static_cast<int>(a),
           .b = static_cast<int>(b),
           .pcie = pcie_path_between(devices[a], devices[b], machine.numa_nodes.size())});
    }
  }
}

std::string devices_text(std::size_t count) {
  return fmt::format("{} NVIDIA device{} on the PCI bus", count, count == 1 ? "" : "s");
}

}  // namespace

void find_gpus(const FileTree& tree, const std::string& nvml_library, Machine& machine) {
  const auto on_bus = nvidia_gpus_on_pci(tree);
  if (nvml_library.empty()) return take_pci(on_bus, machine);

  auto answer = query_nvml(nvml_library);
  if (!answer) {
    take_pci(on_bus, machine);
    const auto kernel_module = machine.drivers.modules.find("nvidia");
    // A machine with neither GPU nor driver needs no note.
    if (on_bus.empty() && kernel_module == machine.drivers.modules.end()) return;
    std::string note = fmt::format("{} but {}", devices_text(on_bus.size()), answer.error().line());
    if (kernel_module != machine.drivers.modules.end() && !kernel_module->second.empty()) {
      note += fmt::format(" (kernel module {})", kernel_module->second);
    }
    machine.notes.push_back(std::move(note));
    return;
  }
  machine.drivers.nvidia = answer->driver_version;
  machine.drivers.cuda = answer->cuda_version;
  if (answer->gpus.empty() && !on_bus.empty()) {
    machine.notes.push_back(devices_text(on_bus.size()) + " but NVML counts no GPU");
    return take_pci(on_bus, machine);
  }
  take_nvml(tree, *answer, machine);
  if (on_bus.size() > machine.gpus.size()) {
    // Normal in a container with only some of the machine's GPUs; worth a note elsewhere.
    machine.notes.push_back(
        fmt::format("{} but NVML reports {}", devices_text(on_bus.size()), machine.gpus.size()));
  }
}

}  // namespace assay::machine
