// See nvml.h. Every result is checked: drivers return "not supported" for some facts on some GPUs,
// and on a faulty GPU some calls fail.
#include "machine/nvml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <map>

#include "machine/nvml_library.h"
#include "machine/pci.h"

namespace assay::machine {
namespace {

using nvml::call;
using nvml::Device;
using nvml::Functions;
using nvml::kSuccess;
using nvml::NvmlLibrary;

// A broken library may report four billion GPUs.
constexpr unsigned kMaxGpus = 256;

// Runs a function that writes text; an unterminated answer is cut at the end of the buffer.
template <class F>
std::string text_of(const F& write) {
  std::array<char, 128> buffer{};
  if (write(buffer.data(), static_cast<unsigned>(buffer.size() - 1)) != kSuccess) return {};
  buffer.back() = '\0';
  return buffer.data();
}

std::optional<int> number_of(nvml::Function<Device, unsigned*> function, Device device) {
  unsigned value = 0;
  if (call(function, device, &value) != kSuccess) return std::nullopt;
  if (value > static_cast<unsigned>(std::numeric_limits<int>::max())) return std::nullopt;
  return static_cast<int>(value);
}

std::string bus_id_of(nvml::PciInfo info) {
  info.bus_id[sizeof info.bus_id - 1] = '\0';
  return sysfs_bus_id(info.bus_id);
}

std::optional<int> cores_per_sm(const ComputeCapability& compute) {
  switch (compute.major) {
    case 5:
      return 128;
    case 6:
      return compute.minor == 0 ? 64 : 128;
    case 7:
      return 64;
    case 8:
      return compute.minor == 0 ? 64 : 128;
    case 9:
    case 10:
    case 11:
    case 12:
      return 128;
    default:
      return std::nullopt;  // a guess would be worse than not knowing
  }
}

std::optional<base::BytesPerSecond> nvlink_rate(const Functions& f, Device device) {
  nvml::FieldValue value{.field_id = nvml::kFieldNvlinkSpeedMbps};
  if (call(f.field_values, device, 1, &value) != kSuccess || value.result != kSuccess) {
    return std::nullopt;
  }
  if (value.value_type != nvml::kValueTypeUnsigned || value.value.u32 == 0) return std::nullopt;
  return base::BytesPerSecond(value.value.u32 * 1e6);
}

NvlinkEnd nvlink_end(const Functions& f, Device device, unsigned link) {
  NvlinkEnd end;
  int type = 0;
  if (call(f.nvlink_remote_type, device, link, &type) == kSuccess) {
    if (type == nvml::kRemoteGpu) end.remote = NvlinkEnd::Remote::kGpu;
    if (type == nvml::kRemoteSwitch) end.remote = NvlinkEnd::Remote::kSwitch;
  }
  nvml::PciInfo info{};
  if (call(f.nvlink_remote_pci, device, link, &info) == kSuccess) end.bus_id = bus_id_of(info);
  return end;
}

void ask_nvlinks(const Functions& f, Device device, NvmlGpu& answer) {
  for (unsigned link = 0; link < nvml::kMaxNvlinks; ++link) {
    int active = 0;
    const nvml::Return result = call(f.nvlink_state, device, link, &active);
    // "Not supported" on the first link is an answer: a GPU without NVLink.
    if (result == kSuccess || result == nvml::kNotSupported) {
      answer.gpu.nvlinks = answer.gpu.nvlinks.value_or(0);
    }
    if (result == nvml::kInvalidArgument || result == nvml::kFunctionNotFound) break;
    if (result != kSuccess || active != 1) continue;
    answer.nvlinks.push_back(nvlink_end(f, device, link));
    answer.gpu.nvlinks = static_cast<int>(answer.nvlinks.size());
  }
  if (!answer.nvlinks.empty()) answer.gpu.nvlink_rate = nvlink_rate(f, device);
}

NvmlGpu ask_gpu(const Functions& f, Device device) {
  NvmlGpu answer;
  Gpu& gpu = answer.gpu;
  gpu.name = text_of([&](char* text, unsigned size) { return call(f.name, device, text, size); });
  gpu.uuid = text_of([&](char* text, unsigned size) { return call(f.uuid, device, text, size); });
  nvml::PciInfo pci{};
  if (call(f.pci_info, device, &pci) == kSuccess) gpu.pci_bus_id = bus_id_of(pci);
  nvml::Memory memory{};
  if (call(f.memory_info, device, &memory) == kSuccess && memory.total > 0 &&
      memory.total <= static_cast<unsigned long long>(std::numeric_limits<std::int64_t>::max())) {
    gpu.memory = base::Bytes(static_cast<std::int64_t>(memory.total));
  }
  auto milliwatts = number_of(f.enforced_power_limit, device);
  if (!milliwatts) milliwatts = number_of(f.power_limit, device);
  if (milliwatts) gpu.power_limit = base::Watts(*milliwatts / 1e3);
  gpu.pcie = {.gen = number_of(f.pcie_gen, device),
              .width = number_of(f.pcie_width, device),
              .max_gen = number_of(f.max_pcie_gen, device),
              .max_width = number_of(f.max_pcie_width, device)};
  ComputeCapability compute;
  if (call(f.compute_capability, device, &compute.major, &compute.minor) == kSuccess &&
      compute.major > 0 && compute.minor >= 0) {
    gpu.compute = compute;
    const auto cores = number_of(f.core_count, device);
    if (const auto per_sm = cores_per_sm(compute); per_sm && cores) gpu.sm_count = *cores / *per_sm;
  }
  ask_nvlinks(f, device, answer);
  return answer;
}

PciePath path_of(int level) {
  switch (level) {
    case nvml::kTopologyInternal:
      return PciePath::kSameBoard;
    case nvml::kTopologySingle:
      return PciePath::kOneSwitch;
    case nvml::kTopologyMultiple:
      return PciePath::kSwitches;
    case nvml::kTopologyHostBridge:
      return PciePath::kHostBridge;
    case nvml::kTopologyNode:
      return PciePath::kSameNuma;
    case nvml::kTopologySystem:
      return PciePath::kCrossNuma;
    default:
      return PciePath::kUnknown;
  }
}

std::vector<GpuLink> ask_pairs(const Functions& f, const std::vector<Device>& devices) {
  std::vector<GpuLink> pairs;
  for (std::size_t a = 0; a < devices.size(); ++a) {
    for (std::size_t b = a + 1; b < devices.size(); ++b) {
      GpuLink pair{.a = static_cast<int>(a), .b = static_cast<int>(b)};
      int level = -1;
      if (devices[a] != nullptr && devices[b] != nullptr &&
          call(f.common_ancestor, devices[a], devices[b], &level) == kSuccess) {
        pair.pcie = path_of(level);
      }
      pairs.push_back(pair);
    }
  }
  return pairs;
}

// One line per missing fact, not one per GPU.
void note_missing_facts(NvmlAnswer& answer) {
  std::map<std::string, std::vector<int>> missing;
  for (const auto& [gpu, nvlinks] : answer.gpus) {
    if (gpu.name.empty()) missing["name"].push_back(gpu.index);
    if (gpu.pci_bus_id.empty()) missing["PCI bus id"].push_back(gpu.index);
    if (!gpu.memory) missing["memory"].push_back(gpu.index);
    if (!gpu.compute) missing["compute capability"].push_back(gpu.index);
  }
  for (const auto& [fact, gpus] : missing) {
    answer.notes.push_back(
        fmt::format("NVML does not report the {} of GPU {}", fact, fmt::join(gpus, ", ")));
  }
}

}  // namespace

base::Result<NvmlAnswer> query_nvml(const std::string& name) {
  ASSAY_TRY(const NvmlLibrary library, NvmlLibrary::open(name));
  const Functions& f = library.functions();
  unsigned count = 0;
  if (const nvml::Return result = f.device_count(&count); result != kSuccess) {
    return base::fail(base::unfit_error(
        name, fmt::format("NVML cannot count the GPUs: {}", library.error_text(result))));
  }
  NvmlAnswer answer;
  if (count > kMaxGpus) {
    answer.notes.push_back(
        fmt::format("NVML counts {} GPUs; only the first {} are used", count, kMaxGpus));
    count = kMaxGpus;
  }
  answer.driver_version =
      text_of([&](char* text, unsigned size) { return call(f.driver_version, text, size); });
  if (int cuda = 0; call(f.cuda_version, &cuda) == kSuccess && cuda > 0) {
    answer.cuda_version = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
  }
  std::vector<Device> devices;
  for (unsigned index = 0; index < count; ++index) {
    Device device = nullptr;
    const nvml::Return result = f.device_by_index(index, &device);
    if (result != kSuccess) {
      device = nullptr;
      answer.notes.push_back(
          fmt::format("GPU {} does not answer: {}", index, library.error_text(result)));
    }
    answer.gpus.push_back(device == nullptr ? NvmlGpu() : ask_gpu(f, device));
    answer.gpus.back().gpu.index = static_cast<int>(index);
    devices.push_back(device);
  }
  answer.pairs = ask_pairs(f, devices);
  note_missing_facts(answer);
  return answer;
}

}  // namespace assay::machine
