// AttentionGraphs: causal attention by cuDNN, forward and backward. One graph is built for each
// combination of shapes and strides in a program. This header hides cuDNN's very heavy headers and
// depends on nothing of this module except Matrix: functions that can fail return a message, empty
// on success.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "train/cuda/matrix.h"

namespace assay::train::cuda {

// Each row is a token, with its heads side by side; key and value heads are shared evenly by the
// query heads. There may be more keys than queries; the last query of a sequence sees all of its
// keys.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t queries = 0;  // per sequence
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
  // Added to the scores of every head, or empty: one row per query of a sequence, with one element
  // per key. Its memory need not exist yet when a graph is built.
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
  // Uses only the operands' shapes and strides, not their memory. Does nothing if the graph exists.
  std::string build_forward(const AttentionShape& shape, const AttentionOperands& operands);
  std::string build_backward(const AttentionShape& shape, const AttentionGradOperands& operands);
  [[nodiscard]] std::int64_t workspace_bytes() const;  // enough for any graph

  std::string forward(const AttentionShape& shape, const AttentionOperands& operands,
                      void* workspace);
  std::string backward(const AttentionShape& shape, const AttentionGradOperands& operands,
                       void* workspace);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::train::cuda
