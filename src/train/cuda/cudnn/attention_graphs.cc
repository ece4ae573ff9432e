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
enum Uid : std::int64_t { kQ = 1, kK, kV, kO, kLogSumExp, kDO, kDQ, kDK, kDV };

std::string text_of(fe::error_t status) {
  if (status.is_good()) return "";
  return "cuDNN " + std::to_string(cudnnGetVersion()) + ": " + status.get_message();
}

const char* const kOtherStrides = "the strides differ from those its graph was built for";

}  // namespace

struct AttentionGraphs::Impl {
  AttentionShape shape;
  bool deterministic = true;
  cudnnHandle_t handle = nullptr;
  std::unique_ptr<Graph> forward;
  std::unique_ptr<Graph> backward;
  std::int64_t forward_strides[4] = {};
  std::int64_t backward_strides[8] = {};
  std::int64_t workspace = 0;

  ~Impl() {
    forward.reset();  // plans must be destroyed before their handle
    backward.reset();
    if (handle != nullptr) cudnnDestroy(handle);
  }

  std::unique_ptr<Graph> begin() const {
    auto graph = std::make_unique<Graph>();
    graph->set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    return graph;
  }

  // cuDNN's dimensions: batch, head, token, element.
  std::vector<std::int64_t> dims(std::int64_t heads) const {
    return {shape.batch, heads, shape.sequence, shape.head_dim};
  }
  std::vector<std::int64_t> strides(std::int64_t row) const {
    return {shape.sequence * row, shape.head_dim, row, 1};
  }
  Tensor input(Graph& graph, Uid uid, std::int64_t heads, std::int64_t row) const {
    return graph.tensor(
        fe::graph::Tensor_attributes().set_uid(uid).set_dim(dims(heads)).set_stride(strides(row)));
  }
  void output(const Tensor& tensor, Uid uid, std::int64_t heads, std::int64_t row) const {
    tensor->set_output(true).set_uid(uid).set_dim(dims(heads)).set_stride(strides(row));
  }
  std::vector<std::int64_t> sum_dims() const {
    return {shape.batch, shape.heads, shape.sequence, 1};
  }
  std::vector<std::int64_t> sum_strides() const {
    return {shape.heads * shape.sequence, shape.sequence, 1, 1};
  }
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(shape.head_dim)); }

  std::string finish(Graph& graph) {
    std::string failure = text_of(graph.build(handle, {fe::HeurMode_t::A}));
    if (!failure.empty()) return failure;
    std::int64_t bytes = 0;
    failure = text_of(graph.get_workspace_size(bytes));
    workspace = std::max(workspace, bytes);
    return failure;
  }
};

AttentionGraphs::AttentionGraphs() : impl_(std::make_unique<Impl>()) {}
AttentionGraphs::~AttentionGraphs() = default;

std::string AttentionGraphs::open(AttentionShape shape, bool deterministic, cudaStream_t stream) {
  impl_->shape = shape;
  impl_->deterministic = deterministic;
  if (cudnnCreate(&impl_->handle) != CUDNN_STATUS_SUCCESS ||
      cudnnSetStream(impl_->handle, stream) != CUDNN_STATUS_SUCCESS) {
    return "cuDNN cannot be initialised on this GPU, or some of its libraries are missing";
  }
  return "";
}

std::string AttentionGraphs::build_forward(const AttentionOperands& m) {
  Impl& g = *impl_;
  const std::int64_t strides[4] = {m.q.stride, m.k.stride, m.v.stride, m.o.stride};
  std::copy_n(strides, 4, g.forward_strides);
  g.forward = g.begin();
  // The composite graph: in this version the single node has no causal mask on Hopper.
  const auto options = fe::graph::SDPA_attributes()
                           .set_name("attention")
                           .set_generate_stats(true)
                           .set_attn_scale(g.scale())
                           .set_causal_mask(true)
                           .set_implementation(fe::AttentionImplementation_t::COMPOSITE);
  auto [o, sums] = g.forward->sdpa(g.input(*g.forward, kQ, g.shape.heads, m.q.stride),
                                   g.input(*g.forward, kK, g.shape.kv_heads, m.k.stride),
                                   g.input(*g.forward, kV, g.shape.kv_heads, m.v.stride), options);
  g.output(o, kO, g.shape.heads, m.o.stride);
  sums->set_output(true)
      .set_uid(kLogSumExp)
      .set_data_type(fe::DataType_t::FLOAT)
      .set_dim(g.sum_dims())
      .set_stride(g.sum_strides());
  return g.finish(*g.forward);
}

std::string AttentionGraphs::build_backward(const AttentionGradOperands& m) {
  Impl& g = *impl_;
  const AttentionOperands& f = m.forward;
  const std::int64_t strides[8] = {f.q.stride,   f.k.stride,  f.v.stride,  f.o.stride,
                                   m.d_o.stride, m.dq.stride, m.dk.stride, m.dv.stride};
  std::copy_n(strides, 8, g.backward_strides);
  g.backward = g.begin();
  Graph& graph = *g.backward;
  const auto options = fe::graph::SDPA_backward_attributes()
                           .set_name("attention gradient")
                           .set_attn_scale(g.scale())
                           .set_causal_mask(true)
                           .set_deterministic_algorithm(g.deterministic);
  const Tensor sums = graph.tensor(fe::graph::Tensor_attributes()
                                       .set_uid(kLogSumExp)
                                       .set_data_type(fe::DataType_t::FLOAT)
                                       .set_dim(g.sum_dims())
                                       .set_stride(g.sum_strides()));
  auto [dq, dk, dv] =
      graph.sdpa_backward(g.input(graph, kQ, g.shape.heads, f.q.stride),
                          g.input(graph, kK, g.shape.kv_heads, f.k.stride),
                          g.input(graph, kV, g.shape.kv_heads, f.v.stride),
                          g.input(graph, kO, g.shape.heads, f.o.stride),
                          g.input(graph, kDO, g.shape.heads, m.d_o.stride), sums, options);
  g.output(dq, kDQ, g.shape.heads, m.dq.stride);
  g.output(dk, kDK, g.shape.kv_heads, m.dk.stride);
  g.output(dv, kDV, g.shape.kv_heads, m.dv.stride);
  return g.finish(graph);
}

std::int64_t AttentionGraphs::workspace_bytes() const {
  return impl_->workspace;
}

std::string AttentionGraphs::forward(const AttentionOperands& m, void* workspace) {
  const std::int64_t strides[4] = {m.q.stride, m.k.stride, m.v.stride, m.o.stride};
  if (!std::equal(strides, strides + 4, impl_->forward_strides)) return kOtherStrides;
  std::unordered_map<std::int64_t, void*> pointers = {{kQ, m.q.data},
                                                      {kK, m.k.data},
                                                      {kV, m.v.data},
                                                      {kO, m.o.data},
                                                      {kLogSumExp, m.log_sum_exp.data}};
  return text_of(impl_->forward->execute(impl_->handle, pointers, workspace));
}

std::string AttentionGraphs::backward(const AttentionGradOperands& m, void* workspace) {
  const AttentionOperands& f = m.forward;
  const std::int64_t strides[8] = {f.q.stride,   f.k.stride,  f.v.stride,  f.o.stride,
                                   m.d_o.stride, m.dq.stride, m.dk.stride, m.dv.stride};
  if (!std::equal(strides, strides + 8, impl_->backward_strides)) return kOtherStrides;
  std::unordered_map<std::int64_t, void*> pointers = {
      {kQ, f.q.data},   {kK, f.k.data},    {kV, f.v.data},
      {kO, f.o.data},   {kDO, m.d_o.data}, {kLogSumExp, f.log_sum_exp.data},
      {kDQ, m.dq.data}, {kDK, m.dk.data},  {kDV, m.dv.data}};
  return text_of(impl_->backward->execute(impl_->handle, pointers, workspace));
}

}  // namespace assay::train::cuda
