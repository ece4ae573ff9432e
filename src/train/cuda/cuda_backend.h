// The NVIDIA GPU backend: bf16 with exact fp32 master weights, one arena, one host sync per step.
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
  // Sums attention's gradient in a fixed order. Off is faster, but runs differ in the last bits.
  // On, cuDNN needs a workspace of micro_batch x heads x sequence^2 x 2 bytes on Hopper.
  bool deterministic_attention = true;
  // Caches the fastest algorithm of every matrix product. Empty: those that are not compiled in are
  // timed whenever a program is prepared.
  std::string tuning_file;
  // Times every product again, and for long: for tables that are compiled in.
  bool thorough_tuning = false;
  // Whether the host must have room for Backend::copy_out.
  bool copies_state = true;
  // Ranks of this machine, each of which needs as much of it.
  int host_ranks = 1;
  // For programs of several ranks, whose memory is this device's; must outlive the backend.
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
  std::int64_t measured = 0;   // device memory taken since before prepare()
};

class CudaBackend : public Backend {
 public:
  // Times each op on the device, which costs a little time between ops. op_times() are those of the
  // last finished step.
  virtual void time_ops(bool on) = 0;
  [[nodiscard]] virtual const std::vector<OpTime>& op_times() const = 0;
  [[nodiscard]] virtual MemoryUse memory() const = 0;
  // How long the host has waited for the device, to know the rows of experts: while the device is
  // busy, so this is not lost to the step.
  [[nodiscard]] virtual std::chrono::nanoseconds waited_for_experts() const = 0;
  // PCI address, "0000:18:00.0": other libraries number devices differently.
  [[nodiscard]] virtual std::string pci_bus_id() const = 0;
};

// The GPUs that this process may use (CUDA_VISIBLE_DEVICES); 0 also in builds without CUDA.
int device_count();

// Fails with one line if there is no such device, or this program was built without CUDA.
base::Result<std::unique_ptr<CudaBackend>> make_cuda_backend(const CudaOptions& options = {});

}  // namespace assay::train::cuda
