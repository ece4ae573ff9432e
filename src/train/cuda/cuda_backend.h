// The NVIDIA GPU backend: bf16 with exact fp32 master weights, one arena, one host synchronisation
// per step.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "train/backend.h"
#include "train/rank_groups.h"

namespace assay::train::cuda {

struct CudaOptions {
  int device = 0;
  // Sums the gradient of attention in a fixed order. Turning it off is faster, but then runs differ
  // in the last bits. On Hopper it costs a cuDNN workspace of micro_batch x heads x sequence^2 x 2
  // bytes.
  bool deterministic_attention = true;
  // Caches the fastest algorithm of every matrix product. Empty: products that are not in the
  // compiled-in tables are timed whenever a program is prepared.
  std::string tuning_file;
  // Times every product again, and for longer: used to make the compiled-in tables.
  bool thorough_tuning = false;
  // Whether the host needs memory for Backend::copy_out.
  bool copies_state = true;
  // Number of ranks on this machine; each needs as much host memory.
  int host_ranks = 1;
  int device_ranks = 1;  // that share the device
  // For programs of several ranks; collectives operate on this device's memory. Must outlive the
  // backend.
  RankGroups* groups = nullptr;
};

struct OpTime {
  const step::Op* op = nullptr;
  double ms = 0;       // device time of this op
  double idle_ms = 0;  // device idle time before it
};

struct MemoryUse {
  std::int64_t planned = 0;    // the program's arena
  std::int64_t workspace = 0;  // of the kernels, in the same allocation
  // Device memory taken since before prepare(). The driver counts for the whole device, so of ranks
  // that share one each has an equal share.
  std::int64_t measured = 0;
};

class CudaBackend : public Backend {
 public:
  // Measures the device time of each op, at the cost of a little time between ops. op_times() are
  // those of the last finished step.
  virtual void time_ops(bool on) = 0;
  [[nodiscard]] virtual const std::vector<OpTime>& op_times() const = 0;
  [[nodiscard]] virtual MemoryUse memory() const = 0;
  // How long the host has waited for the device to report the experts' row counts. The device is
  // busy meanwhile, so this time is not lost.
  [[nodiscard]] virtual std::chrono::nanoseconds waited_for_experts() const = 0;
  // PCI address, "0000:18:00.0": other libraries number devices differently.
  [[nodiscard]] virtual std::string pci_bus_id() const = 0;
};

// The GPUs that this process may use (CUDA_VISIBLE_DEVICES); 0 also in builds without CUDA.
int device_count();

// Fails with one line if there is no such device, or this program was built without CUDA.
base::Result<std::unique_ptr<CudaBackend>> make_cuda_backend(const CudaOptions& options = {});

}  // namespace assay::train::cuda
