// The backend of NVIDIA GPUs: bf16 with exact fp32 masters, one arena, one host sync per step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/backend.h"

namespace assay::train::cuda {

struct CudaOptions {
  int device = 0;
  // Attention's gradient in a fixed order of sums. Off is faster, and then two runs differ in their
  // last bits. On, cuDNN keeps a matrix of scores on Hopper: micro_batch x heads x sequence^2 x 2
  // bytes of workspace.
  bool deterministic_attention = true;
  // Where the fastest algorithm of every matrix product is kept from run to run. Empty: they are
  // timed anew whenever a program is prepared.
  std::string tuning_file;
  // Whether host memory for Backend::copy_out is got ahead, so that no step waits for it.
  bool copies_state = true;
};

struct OpTime {
  const step::Op* op = nullptr;
  double ms = 0;       // of the device, for this op
  double idle_ms = 0;  // of the device, before it
};

struct MemoryUse {
  std::int64_t planned = 0;    // the program's arena
  std::int64_t workspace = 0;  // what the kernels need beside it, in the same allocation
  std::int64_t measured = 0;   // what the whole device has taken since before prepare()
};

class CudaBackend : public Backend {
 public:
  // From here on until told otherwise each op is timed on the device, which costs a little time
  // between ops. The times are of the step that was finished last.
  virtual void time_ops(bool on) = 0;
  [[nodiscard]] virtual const std::vector<OpTime>& op_times() const = 0;
  [[nodiscard]] virtual MemoryUse memory() const = 0;
  // Where the device is plugged in, "0000:18:00.0": other libraries number devices differently.
  [[nodiscard]] virtual std::string pci_bus_id() const = 0;
};

// Fails with one line if there is no such device, or this program was built without CUDA.
base::Result<std::unique_ptr<CudaBackend>> make_cuda_backend(const CudaOptions& options = {});

}  // namespace assay::train::cuda
