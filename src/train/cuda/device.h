// Device: what everything that launches work is given: the stream, the workspace, and a place to
// say what was launched or went wrong. Launching code tells of itself from the memory it was
// handed, so the log is of what was executed, not of what was asked.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "step/op.h"
#include "train/cuda/matrix.h"

namespace assay::train {
struct Executed;
}

namespace assay::train::cuda {

// Memory beside the program's, for the time of one op unless said. Sizes are those of workspace.cc.
struct Workspace {
  void* products = nullptr;  // cuBLASLt's
  std::int64_t products_bytes = 0;
  void* attention = nullptr;       // cuDNN's
  float* partial = nullptr;        // sums over blocks of rows, before they are summed
  double* sums = nullptr;          // kSums of them, and 2 per token of a micro-batch
  float* turns = nullptr;          // kept: cosines, then sines, of every position
  std::int32_t* places = nullptr;  // kept for a micro-batch: see batches.h
  void* orthogonal = nullptr;      // Muon's four matrices
};

class Device {
 public:
  cudaStream_t stream = nullptr;
  Workspace workspace;

  void log_to(std::vector<Executed>* log, const step::Op* op) {
    log_ = log;
    op_ = op;
  }
  // Operands that are not there are left out.
  void did(step::Kind kind, const std::vector<Shape>& in, const std::vector<Shape>& out);
  // Keeps what failed first; `what` is whose call it was.
  void check(cudaError_t status, const char* what);
  void launched(const char* what) { check(cudaGetLastError(), what); }
  void failed(std::string what);
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  std::vector<Executed>* log_ = nullptr;
  const step::Op* op_ = nullptr;
  std::string failure_;
};

}  // namespace assay::train::cuda
