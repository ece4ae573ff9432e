// AttentionGraphs: causal attention by cuDNN, forward and backward. A graph is built once for each
// of the shapes and strides that a program has. This header hides cuDNN's very heavy ones and uses
// nothing of the module but matrices: functions that can fail return a message, empty on success.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "train/cuda/matrix.h"

namespace assay::train::cuda {

// Heads are side by side in rows of tokens; query heads share key and value heads evenly. The last
// query of a sequence sees all of its keys, which may be more than queries.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t queries = 0;  // of a sequence
  std::int64_t keys = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;

  bool operator==(const AttentionShape&) const = default;
};

struct AttentionOperands {
  Matrix q;
  Matrix k;
  Matrix v;
  Matrix o;
  Matrix log_sum_exp;  // fp32; in cuDNN's order: sequence, head, token
  // What is added to the scores of every head, or empty: a row for each query of a sequence, as
  // long as its keys. Its memory need not be there when a graph is built.
  Matrix bias = {};
};

struct AttentionGradOperands {
  AttentionOperands forward;
  Matrix d_o;
  Matrix dq;
  Matrix dk;
  Matrix dv;
};

class AttentionGraphs {
 public:
  AttentionGraphs();
  ~AttentionGraphs();

  std::string open(bool deterministic, cudaStream_t stream);
  // From the operands' strides; their memory is not accessed. Nothing if there is such a graph.
  std::string build_forward(const AttentionShape& shape, const AttentionOperands& operands);
  std::string build_backward(const AttentionShape& shape, const AttentionGradOperands& operands);
  [[nodiscard]] std::int64_t workspace_bytes() const;  // enough for any of them

  std::string forward(const AttentionShape& shape, const AttentionOperands& operands,
                      void* workspace);
  std::string backward(const AttentionShape& shape, const AttentionGradOperands& operands,
                       void* workspace);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::train::cuda
