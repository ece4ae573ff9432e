// Device: passed to all code that launches GPU work; has the stream, the workspace, the log of
// executed ops and the first failure. GpuCapability: what the GPU supports.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "base/result.h"
#include "step/program.h"
#include "train/cuda/matrix.h"
#include "train/executed.h"

namespace assay::train::cuda {

// Memory in addition to the program's, used within one op unless noted. workspace.cc decides the
// sizes.
struct Workspace {
  void* products = nullptr;  // cuBLASLt's
  std::int64_t products_bytes = 0;
  void* attention = nullptr;            // cuDNN's
  void* document_bias = nullptr;        // for one micro-batch: see kernels.h
  float* partial = nullptr;             // first-stage sums over blocks of rows
  float* norm_sums = nullptr;           // for all blocks of gradients
  double* sums = nullptr;               // kSums elements, plus 2 per token of a micro-batch
  float* rotation_table = nullptr;      // persistent: rotary cosines, then sines, of every position
  std::int32_t* token_index = nullptr;  // valid for a micro-batch: see batches.h
  void* orthogonal = nullptr;           // Muon's four matrices
  void* routing = nullptr;              // for mixtures: sums and counts per block
  void* lanes = nullptr;                // cuBLASLt's, for products on parallel streams
};

class Device : public OpRecorder {
 public:
  cudaStream_t stream = nullptr;
  Workspace workspace;

  // Keeps the first failure; `what` names the call.
  void check(cudaError_t status, const char* what) {
    if (status != cudaSuccess) failed(std::string(what) + ": " + cudaGetErrorString(status));
  }
  void launched(const char* what) { check(cudaGetLastError(), what); }
  void failed(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  std::string failure_;
};

// What a GPU supports, according to its compute capability.
struct GpuCapability {
  std::string name;
  int major = 0;  // of the compute capability
  int minor = 0;

  // Tensor cores for fp8: Ada, Hopper and later.
  [[nodiscard]] bool has_fp8() const { return major * 10 + minor >= 89; }
};

// Whether the GPU can be used at all: libraries and kernels need bf16 tensor cores.
base::Result<void> check_capability(const GpuCapability& capability);
// Whether the GPU supports these number formats.
base::Result<void> check_numerics(const GpuCapability& capability, const step::Numerics& numerics);

}  // namespace assay::train::cuda
