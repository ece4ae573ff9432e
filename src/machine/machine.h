// Machine: the hardware and drivers of one computer, as far as they could be determined. Plain
// data: discover() fills it; spec (the cluster preset `this-machine`), compare and lineage
// read it.
//
// A count of 0, an empty string or an empty optional means "not known"; `notes` says why.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/units.h"

namespace assay::machine {

struct Os {
  std::string name;     // "Debian GNU/Linux"
  std::string version;  // "12"
  std::string kernel;   // "6.1.0-18-amd64"
};

struct Cpu {
  std::string model;
  int sockets = 0;
  int cores = 0;                        // physical cores of all sockets
  int threads = 0;                      // hardware threads that are online
  int allowed_threads = 0;              // those this process may run on: affinity and cpuset
  std::optional<double> quota_threads;  // the control group's CPU quota, in threads
  std::vector<std::string> features;    // instruction sets that matter to training: "avx512f", …

  // How many threads are worth starting, given affinity and quota; at least 1 if known.
  [[nodiscard]] int usable_threads() const;
};

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;  // empty for memory without processors, e.g. a GPU's
  base::Bytes memory{};
  std::vector<int> distances;  // to every node, in the firmware's unit: 10 is local
};

// A GPU lowers its link when idle, so gen < max_gen means something only under load.
struct PcieLink {
  std::optional<int> gen;
  std::optional<int> width;
  std::optional<int> max_gen;
  std::optional<int> max_width;
};

struct ComputeCapability {
  int major = 0;
  int minor = 0;
};

struct Gpu {
  int index = 0;     // position in Machine::gpus; PCI bus order, which CUDA need not follow
  std::string name;  // "NVIDIA H200"
  std::string uuid;
  std::string pci_bus_id;  // as in sysfs: "0000:18:00.0"
  std::optional<base::Bytes> memory;
  std::optional<int> numa_node;
  PcieLink pcie;
  std::optional<int> nvlinks;                       // active links
  std::optional<base::BytesPerSecond> nvlink_rate;  // of one link, in one direction
  std::optional<base::Watts> power_limit;
  std::optional<int> sm_count;
  std::optional<ComputeCapability> compute;
};

// The nearest common point of two GPUs on the PCIe path between them, nearest first.
enum class PciePath {
  kUnknown,
  kSameBoard,
  kOneSwitch,   // a single PCIe switch (PIX)
  kSwitches,    // several PCIe switches, no host bridge (PXB)
  kHostBridge,  // PHB
  kSameNuma,    // different host bridges of one NUMA node (NODE)
  kCrossNuma,   // the link between sockets (SYS)
};
std::string_view to_text(PciePath path);

struct GpuLink {
  int a = 0;  // a < b, positions in Machine::gpus
  int b = 0;
  PciePath pcie = PciePath::kUnknown;
  int nvlinks = 0;        // between the two; through a switch: the smaller of the two ends' numbers
  bool nvswitch = false;  // the links go through switches and are shared with other pairs
};

enum class NicKind { kEthernet, kRoce, kInfiniband, kEfa };
std::string_view to_text(NicKind kind);

// One port of a network adapter. A RoCE port is listed once, not again as Ethernet.
struct Nic {
  std::string name;  // "mlx5_0", "eth0"
  int port = 1;
  std::string interface;  // the network interface of an RDMA device, if it has one
  NicKind kind = NicKind::kEthernet;
  std::optional<base::BytesPerSecond> rate;
  std::optional<bool> up;
  std::optional<int> numa_node;
  std::string pci_bus_id;
};

struct Drivers {
  std::string nvidia;  // the user-space driver's version, e.g. "580.65.06"
  std::string cuda;    // the newest CUDA it supports, e.g. "13.0"
  // Loaded kernel modules that GPUs and networks depend on; the version is empty when the module
  // states none (those that come with the kernel).
  std::map<std::string, std::string> modules;
};

enum class GpuSource {
  kNone,  // no GPU was found
  kPci,   // found on the PCI bus without the driver: names and sizes are missing
  kNvml,
};
std::string_view to_text(GpuSource source);

struct Machine {
  std::string hostname;
  Os os;
  Cpu cpu;
  base::Bytes memory{};                     // physical, as the kernel counts it
  std::optional<base::Bytes> memory_limit;  // the control group's, when lower
  std::vector<NumaNode> numa_nodes;
  GpuSource gpu_source = GpuSource::kNone;
  std::vector<Gpu> gpus;
  std::vector<GpuLink> gpu_links;  // every pair, ordered by (a, b)
  std::vector<Nic> nics;
  Drivers drivers;
  std::vector<std::string> notes;  // what could not be determined, and why
};

// Unknown facts are null; units end the key ("memory_bytes", "rate_bytes_per_s").
base::Json to_json(const Machine& machine);

// One line: "2-core Intel Xeon Processor, 23.5 GiB, no GPU".
std::string summary(const Machine& machine);

}  // namespace assay::machine
