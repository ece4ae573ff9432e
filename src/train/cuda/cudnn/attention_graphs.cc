#include "train/cuda/cudnn/attention_graphs.h"

#include <cudnn.h>
#include <cudnn_frontend.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::train::cuda {
namespace {

namespace fe = cudnn_frontend;
using Graph = fe::graph::Graph;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// Ids that bind tensors to pointers at execution.
enum Uid : std::int64_t { kQ = 1, kK, kV, kO, kLogSumExp, kDO, kDQ, kDK, kDV, kBias };

std::string text_of(fe::error_t status) {
  if (status.is_good()) return "";
  return "cuDNN " + std::to_string(cudnnGetVersion()) + ": " + status.get_message();
}

const char* const kNotBuilt = "no graph was built for this shape and these strides";

using Strides = std::vector<std::int64_t>;

Strides strides_of(const AttentionOperands& m) {
  return {m.q.stride, m.k.stride, m.v.stride, m.o.stride, m.bias.stride};
}

Strides strides_of(const AttentionGradOperands& m) {
  Strides all = strides_of(m.forward);
  for (const Matrix& matrix : {m.d_o, m.dq, m.dk, m.dv}) all.push_back(matrix.stride);
  return all;
}

std::unique_ptr<Graph> begin() {
  auto graph = std::make_unique<Graph>();
  graph->set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

// The tensors of a graph; cuDNN's dimensions are batch, head, token, element.
class Tensors {
 public:
  Tensors(Graph& graph, const AttentionShape& shape) : graph_(graph), shape_(shape) {}

  Tensor queries(Uid uid, std::int64_t row) {
    return input(uid, shape_.heads, shape_.queries, row);
  }
  Tensor keys(Uid uid, std::int64_t row) { return input(uid, shape_.kv_heads, shape_.keys, row); }
  Tensor sums() {
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_uid(kLogSumExp)
                             .set_data_type(fe::DataType_t::FLOAT)
                             .set_dim(sum_dims())
                             .set_stride(sum_strides()));
  }
  // The same for all heads.
  Tensor bias(std::int64_t row) {
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_uid(kBias)
                             .set_dim({shape_.batch, 1, shape_.queries, shape_.keys})
                             .set_stride({shape_.queries * row, shape_.queries * row, row, 1}));
  }
  void to_queries(const Tensor& tensor, Uid uid, std::int64_t row) const {
    output(tensor, uid, shape_.heads, shape_.queries, row);
  }
  void to_keys(const Tensor& tensor, Uid uid, std::int64_t row) const {
    output(tensor, uid, shape_.kv_heads, shape_.keys, row);
  }
  void to_sums(const Tensor& tensor) const {
    tensor->set_output(true)
        .set_uid(kLogSumExp)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim(sum_dims())
        .set_stride(sum_strides());
  }

 private:
  Tensor input(Uid uid, std::int64_t heads, std::int64_t tokens, std::int64_t row) {
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_uid(uid)
                             .set_dim(dims(heads, tokens))
                             .set_stride(strides(tokens, row)));
  }
  void output(const Tensor& tensor, Uid uid, std::int64_t heads, std::int64_t tokens,
              std::int64_t row) const {
    tensor->set_output(true)
        .set_uid(uid)
        .set_dim(dims(heads, tokens))
        .set_stride(strides(tokens, row));
  }
  [[nodiscard]] std::vector<std::int64_t> dims(std::int64_t heads, std::int64_t tokens) const {
    return {shape_.batch, heads, tokens, shape_.head_dim};
  }
  [[nodiscard]] std::vector<std::int64_t> strides(std::int64_t tokens, std::int64_t row) const {
    return {tokens * row, shape_.head_dim, row, 1};
  }
  [[nodiscard]] std::vector<std::int64_t> sum_dims() const {
    return {shape_.batch, shape_.heads, shape_.queries, 1};
  }
  [[nodiscard]] std::vector<std::int64_t> sum_strides() const {
    return {shape_.heads * shape_.queries, shape_.queries, 1, 1};
  }

  Graph& graph_;
  const AttentionShape& shape_;
};

// If there are more keys than queries, the diagonal ends at the last key and the last query.
template <class Options>
Options masked(Options options, const AttentionShape& shape) {
  options.set_attn_scale(1.0F / std::sqrt(static_cast<float>(shape.head_dim)));
  if (shape.queries == shape.keys) {
    options.set_causal_mask(true);
  } else {
    options.set_causal_mask_bottom_right(true);
  }
  return options;
}

}  // namespace

struct AttentionGraphs::Impl {
  // A graph, and the shapes and strides it was built for.
  struct Built {
    AttentionShape shape;
    std::vector<std::int64_t> strides;
    std::unique_ptr<Graph> graph;
  };
  static Graph* find(const std::vector<Built>& graphs, const AttentionShape& shape,
                     const std::vector<std::int64_t>& strides) {
    for (const Built& built : graphs) {
      if (built.shape == shape && built.strides == strides) return built.graph.get();
    }
    return nullptr;
  }

  bool deterministic = true;
  cudnnHandle_t handle = nullptr;
  std::vector<Built> forward;
  std::vector<Built> backward;
  std::int64_t workspace = 0;

  ~Impl() {
    forward.clear();  // plans must be destroyed before their handle
    backward.clear();
    if (handle != nullptr) cudnnDestroy(handle);
  }

  std::string finish(std::vector<Built>& graphs, Built built) {
    std::string failure = text_of(built.graph->build(handle, {fe::HeurMode_t::A}));
    if (!failure.empty()) return failure;
    std::int64_t bytes = 0;
    failure = text_of(built.graph->get_workspace_size(bytes));
    workspace = std::max(workspace, bytes);
    graphs.push_back(std::move(built));
    return failure;
  }
};

AttentionGraphs::AttentionGraphs() : impl_(std::make_unique<Impl>()) {}
AttentionGraphs::~AttentionGraphs() = default;

std::string AttentionGraphs::open(bool deterministic, cudaStream_t stream) {
  impl_->deterministic = deterministic;
  if (cudnnCreate(&impl_->handle) != CUDNN_STATUS_SUCCESS ||
      cudnnSetStream(impl_->handle, stream) != CUDNN_STATUS_SUCCESS) {
    return "cuDNN cannot be initialised on this GPU, or some of its libraries are missing";
  }
  return "";
}

std::string AttentionGraphs::build_forward(const AttentionShape& shape,
                                           const AttentionOperands& m) {
  if (Impl::find(impl_->forward, shape, strides_of(m)) != nullptr) return "";
  Impl::Built built{shape, strides_of(m), begin()};
  Tensors tensors(*built.graph, shape);
  // A composite graph: in this version of cuDNN the single node has no causal mask on Hopper.
  auto options = masked(fe::graph::SDPA_attributes()
                            .set_name("attention")
                            .set_generate_stats(true)
                            .set_implementation(fe::AttentionImplementation_t::COMPOSITE),
                        shape);
  if (m.bias.stride > 0) options.set_bias(tensors.bias(m.bias.stride));
  auto [o, sums] = built.graph->sdpa(tensors.queries(kQ, m.q.stride), tensors.keys(kK, m.k.stride),
                                     tensors.keys(kV, m.v.stride), options);
  tensors.to_queries(o, kO, m.o.stride);
  tensors.to_sums(sums);
  return impl_->finish(impl_->forward, std::move(built));
}

std::string AttentionGraphs::build_backward(const AttentionShape& shape,
                                            const AttentionGradOperands& m) {
  if (Impl::find(impl_->backward, shape, strides_of(m)) != nullptr) return "";
  const AttentionOperands& f = m.forward;
  Impl::Built built{shape, strides_of(m), begin()};
  Tensors tensors(*built.graph, shape);
  auto options = masked(fe::graph::SDPA_backward_attributes()
                            .set_name("attention gradient")
                            .set_deterministic_algorithm(impl_->deterministic),
                        shape);
  if (f.bias.stride > 0) options.set_bias(tensors.bias(f.bias.stride));
  auto [dq, dk, dv] = built.graph->sdpa_backward(
      tensors.queries(kQ, f.q.stride), tensors.keys(kK, f.k.stride), tensors.keys(kV, f.v.stride),
      tensors.queries(kO, f.o.stride), tensors.queries(kDO, m.d_o.stride), tensors.sums(), options);
  tensors.to_queries(dq, kDQ, m.dq.stride);
  tensors.to_keys(dk, kDK, m.dk.stride);
  tensors.to_keys(dv, kDV, m.dv.stride);
  return impl_->finish(impl_->backward, std::move(built));
}

std::int64_t AttentionGraphs::workspace_bytes() const {
  return impl_->workspace;
}

std::string AttentionGraphs::forward(const AttentionShape& shape, const AttentionOperands& m,
                                     void* workspace) {
  Graph* graph = Impl::find(impl_->forward, shape, strides_of(m));
  if (graph == nullptr) return kNotBuilt;
  std::unordered_map<std::int64_t, void*> pointers = {{kQ, m.q.data},
                                                      {kK, m.k.data},
                                                      {kV, m.v.data},
                                                      {kO, m.o.data},
                                                      {kLogSumExp, m.log_sum_exp.data}};
  if (m.bias.stride > 0) pointers[kBias] = m.bias.data;
  return text_of(graph->execute(impl_->handle, pointers, workspace));
}

std::string AttentionGraphs::backward(const AttentionShape& shape, const AttentionGradOperands& m,
                                      void* workspace) {
  Graph* graph = Impl::find(impl_->backward, shape, strides_of(m));
  if (graph == nullptr) return kNotBuilt;
  const AttentionOperands& f = m.forward;
  std::unordered_map<std::int64_t, void*> pointers = {
      {kQ, f.q.data},   {kK, f.k.data},    {kV, f.v.data},
      {kO, f.o.data},   {kDO, m.d_o.data}, {kLogSumExp, f.log_sum_exp.data},
      {kDQ, m.dq.data}, {kDK, m.dk.data},  {kDV, m.dv.data}};
  if (f.bias.stride > 0) pointers[kBias] = f.bias.data;
  return text_of(graph->execute(impl_->handle, pointers, workspace));
}

}  // namespace assay::train::cuda
