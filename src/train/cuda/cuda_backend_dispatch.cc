// CudaBackendImpl::dispatch: maps each op to the function that launches it.
#include <algorithm>

#include "step/shapes.h"
#include "train/cuda/cuda_backend_impl.h"
#include "train/cuda/kernels.h"
#include "train/cuda/muon.h"
#include "train/cuda/workspace.h"
#include "train/step_settings.h"

namespace assay::train::cuda {
namespace {

using step::Op;
using step::OpKind;

// The seed of stochastic rounding: different for every step and, for Muon, for every matrix. AdamW
// mixes in the index of each element instead, because which elements an op updates depends on the
// layout.
std::uint32_t rounding_seed(std::int64_t step, const Op& op) {
  const auto part = op.kind == OpKind::kAdamw ? 0U
                                              : static_cast<std::uint32_t>(op.part) +
                                                    32U * static_cast<std::uint32_t>(op.layer + 1);
  return static_cast<std::uint32_t>(step) * 0x9e3779b9U + part * 0x7f4a7c15U;
}

Vocabulary vocabulary_of(const step::Program& program, const Op& op) {
  return {op.first_token,
          std::clamp<std::int64_t>(program.model.vocab - op.first_token, 0, op.in[0].cols)};
}

}  // namespace

bool CudaBackendImpl::is_fp32(const step::View& view) const {
  return program_->buffers[static_cast<std::size_t>(view.buffer)].type == step::Dtype::kF32;
}

Product CudaBackendImpl::product_of(const Op& op) const {
  Product product{.transpose_a = op.transpose_a,
                  .transpose_b = op.transpose_b,
                  .a = matrix(op.in[0]),
                  .b = matrix(op.in[1]),
                  .c = matrix(op.out[0])};
  product.fp32_result = is_fp32(op.out[0]);
  if (op.residual) product.addend = matrix(op.in[2]);
  if (op.adds_to(0)) product.addend = product.c;
  if (op.bias) product.bias = matrix(op.in[op.residual ? 3 : 2]);
  if (op.scaled) {
    product.alpha = 1 / (kFp8Range * kFp8Range);
    product.scale_a = matrix(op.in[op.in.size() - 2]);
    product.scale_b = matrix(op.in[op.in.size() - 1]);
  }
  product.beta = product.addend.empty() ? 0.0F : 1.0F;
  return product;
}

GroupedProduct CudaBackendImpl::grouped_product_of(const Op& op) const {
  return {.transpose_a = op.transpose_a,
          .transpose_b = op.transpose_b,
          .adds = op.adds_to(0),
          .a = matrix(op.in[0]),
          .b = matrix(op.in[1]),
          .c = matrix(op.out[0]),
          .scale_a = op.scaled ? matrix(op.in[3]) : Matrix{},
          .scale_b = op.scaled ? matrix(op.in[4]) : Matrix{},
          .experts = (op.in[2].cols - 1) / op.pieces,
          .pieces = op.pieces,
          .expected_rows = step::rows_of_experts(program_->model, program_->micro_tokens()),
          .first_rows = matrix(op.in[2]).as<std::int32_t>()};
}

RowWeights CudaBackendImpl::row_weights(const Op& op, std::size_t i) const {
  return {at(op.in, i), at(op.in, i + 1)};
}

AttentionShape CudaBackendImpl::attention_shape(const Op& op) const {
  const std::int64_t head_dim = program_->model.head_dim;
  const step::View& q = op.in[0];
  const step::View& k = op.in[1];
  return {op.sequences,      q.rows / op.sequences, k.rows / op.sequences,
          q.cols / head_dim, k.cols / head_dim,     head_dim};
}

Matrix CudaBackendImpl::document_bias_of(const Op& op) const {
  if (!op.documents) return {};
  const std::int64_t keys = op.in[1].rows / op.sequences;
  return {device_.workspace.document_bias, op.in[0].rows, keys, document_bias_stride(keys)};
}

// Computed once for all layers of a forward or backward pass: micro-batches in flight store their
// documents at different addresses.
void CudaBackendImpl::make_document_bias(const Op& op) {
  if (!op.documents) return;
  const Tokens documents = tokens(op.in.back());
  if (biased_ == documents.data) return;
  document_bias(device_, documents, document_bias_of(op));
  biased_ = documents.data;
}

AttentionOperands CudaBackendImpl::attention_of(const Op& op) const {
  return {matrix(op.in[0]),  matrix(op.in[1]),  matrix(op.in[2]),
          matrix(op.out[0]), matrix(op.out[1]), document_bias_of(op)};
}

AttentionGradOperands CudaBackendImpl::attention_grad_of(const Op& op) const {
  return {{matrix(op.in[0]), matrix(op.in[1]), matrix(op.in[2]), matrix(op.in[3]), matrix(op.in[4]),
           document_bias_of(op)},
          matrix(op.in[5]),
          matrix(op.out[0]),
          matrix(op.out[1]),
          matrix(op.out[2])};
}

void CudaBackendImpl::execute_norm(const Op& op) {
  const spec::ModelSpec& m = program_->model;
  const bool heads = op.kind == OpKind::kHeadNorm || op.kind == OpKind::kHeadNormGrad;
  const NormShape shape{.centred = !heads && m.norm == spec::Norm::kLayerNorm,
                        .width = heads ? m.head_dim : m.dim,
                        .epsilon = static_cast<float>(m.norm_epsilon)};
  switch (op.kind) {
    case OpKind::kNorm:
      return norm(device_, shape, at(op.in, 0), at(op.in, 1), at(op.in, 2), at(op.out, 0));
    case OpKind::kNormGrad: {
      const std::size_t weights = op.in.size() - (op.residual ? 1 : 0) - 2;
      return norm_grad(device_, shape, at(op.in, 0), at(op.in, 1),
                       weights > 0 ? at(op.in, 2) : Matrix{},
                       op.residual ? at(op.in, op.in.size() - 1) : Matrix{}, at(op.out, 0),
                       op.adds_to(0), at(op.out, 1), at(op.out, 2), op.adds_to(1));
    }
    case OpKind::kHeadNorm:
      return head_norm(device_, shape, at(op.in, 0), at(op.in, 1), at(op.out, 0));
    default:
      return head_norm_grad(device_, shape, at(op.in, 0), at(op.in, 1), at(op.in, 2), at(op.out, 0),
                            at(op.out, 1), op.adds_to(1));
  }
}

void CudaBackendImpl::execute_attention(const Op& op) {
  std::string failure;
  const Tokens documents = op.documents ? tokens(op.in.back()) : Tokens{};
  make_document_bias(op);
  if (op.kind == OpKind::kAttention) {
    const AttentionOperands m = attention_of(op);
    device_.executed(op.kind, {m.q, m.k, m.v, documents}, {m.o, m.log_sum_exp});
    failure = attention_.forward(attention_shape(op), m, device_.workspace.attention);
  } else {
    const AttentionGradOperands m = attention_grad_of(op);
    const AttentionOperands& f = m.forward;
    device_.executed(op.kind, {f.q, f.k, f.v, f.o, f.log_sum_exp, m.d_o, documents},
                     {m.dq, m.dk, m.dv});
    failure = attention_.backward(attention_shape(op), m, device_.workspace.attention);
  }
  if (!failure.empty()) device_.failed("attention: " + failure);
}

void CudaBackendImpl::execute_context(const Op& op) {
  const std::int64_t sequences = program_->choices.micro_batch;
  const std::int64_t piece = program_->sequence_part().piece;
  if (op.kind == OpKind::kPackKeys) {
    return pack_keys(device_, at(op.in, 0), at(op.in, 1), at(op.out, 0));
  }
  if (op.kind == OpKind::kOrderKeys) {
    return order_keys(device_, sequences, piece, at(op.in, 0), at(op.out, 0));
  }
  if (op.kind == OpKind::kSplitKeysGrad) {
    return split_keys_grad(device_, sequences, piece, at(op.in, 0), at(op.in, 1), at(op.out, 0));
  }
  sum_keys_grad(device_, at(op.in, 0), at(op.out, 0));
}

void CudaBackendImpl::execute_mixture(const Op& op) {
  const spec::ModelSpec& m = program_->model;
  const Routing routing{m.router, m.normalise_router, m.router_scale,
                        step::most_rows_of_expert(m, op.in[0].rows),
                        static_cast<double>(program_->global_step_tokens())};
  switch (op.kind) {
    case OpKind::kRoute:
      return route(device_, routing, at(op.in, 0), at(op.in, 1), at(op.out, 0), at(op.out, 1),
                   at(op.out, 2), at(op.out, 3), op.adds_to(3), at(op.out, 4), op.adds_to(4));
    case OpKind::kRouteGrad:
      return route_grad(device_, routing,
                        {op.adds_losses, settings_.balance_loss, settings_.router_z_loss},
                        at(op.in, 0), at(op.in, 1), at(op.in, 2), at(op.in, 3), at(op.in, 4),
                        at(op.in, 5), at(op.out, 0), at(op.out, 1));
    case OpKind::kSortRows: {
      const Matrix first_rows = at(op.out, 2);
      sort_rows(device_, op.most_rows, at(op.in, 0), at(op.out, 0), at(op.out, 1), first_rows,
                at(op.out, 3), expert_rows_.begin_sort(device_, first_rows.data, first_rows.cols));
      return expert_rows_.end_sort(device_, first_rows.data);
    }
    case OpKind::kArrangeRows: {
      const Matrix sent = at(op.in, 0);
      const Matrix received = at(op.in, 1);
      const Matrix first_rows = at(op.out, 0);
      arrange_rows(device_, sent, received, first_rows, at(op.out, 1), at(op.out, 2),
                   {expert_rows_.begin_sort(device_, first_rows.data, first_rows.cols),
                    expert_rows_.begin_sort(device_, sent.data, sent.rows),
                    expert_rows_.begin_sort(device_, received.data, received.rows)});
      for (const Matrix& written : {first_rows, sent, received}) {
        expert_rows_.end_sort(device_, written.data);
      }
      return;
    }
    case OpKind::kPermuteRows:
      return permute_rows(device_, is_fp32(op.in[0]), at(op.in, 0), at(op.in, 1), at(op.out, 0));
    case OpKind::kGatherRows:
      return gather_rows(device_, m.experts_per_token, at(op.in, 0), at(op.in, 1), at(op.out, 0));
    case OpKind::kCombineRows:
      return combine_rows(device_, at(op.in, 0), at(op.in, 1), at(op.in, 2), at(op.out, 0));
    default: {
      const GroupedProduct product = grouped_product_of(op);
      const Matrix first_rows = at(op.in, 2);
      device_.executed(op.kind,
                       {product.a, product.b, first_rows, product.scale_a, product.scale_b},
                       {product.c});
      if (!grouped_.needs_rows_on_host(product)) return grouped_.multiply(device_, product, {});
      const auto rows = expert_rows_.of(device_, first_rows.data);
      if (!rows.empty()) grouped_.multiply(device_, product, rows);
    }
  }
}

void CudaBackendImpl::execute_optimizer(const Op& op) {
  if (op.kind == OpKind::kFold) {
    const auto add = is_fp32(op.out[0]) ? fold_fp32 : fold;
    return add(device_, at(op.in, 0), at(op.out, 0), op.adds_to(0));
  }
  if (op.kind == OpKind::kBalance) {
    return balance(device_, settings_.balance_rate, at(op.in, 1), at(op.in, 0), at(op.out, 0),
                   at(op.out, 1));
  }
  if (op.kind == OpKind::kNormSums) {
    return norm_sums(device_, step::norm_block(program_->model), all(op.in), all(op.out));
  }
  if (op.kind == OpKind::kGradientNorm) {
    return gradient_norm(device_, all(op.in), settings_.clip, at(op.out, 0));
  }
  if (op.kind == OpKind::kStepSums) return step_sums(device_, at(op.in, 0), at(op.out, 0));
  if (op.kind == OpKind::kMuon) {
    return muon(device_, products_, *program_,
                muon_numbers(settings_, op.out[0].rows, op.out[0].cols),
                rounding_seed(settings_.step, op), at(op.in, 1), at(op.in, 0), at(op.out, 0),
                at(op.out, 1), at(op.out, 2));
  }
  adamw(device_, adamw_numbers(settings_, op.part == step::ModelPart::kDecayed),
        rounding_seed(settings_.step, op), op.element, at(op.in, 1), at(op.in, 0), at(op.out, 0),
        at(op.out, 1), at(op.out, 2), at(op.out, 3));
}

// Makes streams wait, not the host.
void CudaBackendImpl::exchange(const Op& op) {
  device_.executed(op.kind, {at(op.in, 0), at(op.in, 1), at(op.in, 2)}, {at(op.out, 0)});
  if (op.kind == OpKind::kExchangeRows) return exchange_rows(op);
  if (op.kind == OpKind::kWait) return wait_for_exchange(op);
  const auto done =
      options_.groups->issue(*program_, op, op.in.empty() ? nullptr : address(op.in[0]),
                             op.out.empty() ? nullptr : address(op.out[0]), {device_.stream});
  if (!done) device_.failed(done.error().line());
}

void CudaBackendImpl::wait_for_exchange(const Op& op) {
  wait_times_.begin(device_);
  const auto done = options_.groups->wait(op);
  wait_times_.end(device_);
  if (!done) device_.failed(done.error().line());
}

// The first exchange of a layer waits until the device has counted the rows; after it, the host
// queues ahead again.
void CudaBackendImpl::exchange_rows(const Op& op) {
  RowCounts rows;
  for (const auto& [from, to] : {std::pair{&op.in[1], &rows.sent}, {&op.in[2], &rows.received}}) {
    const auto counts = expert_rows_.of(device_, address(*from));
    if (counts.empty()) return;
    to->assign(counts.begin(), counts.end());
  }
  const auto done = options_.groups->issue_rows(*program_, op, rows, address(op.in[0]),
                                                address(op.out[0]), {device_.stream});
  if (!done) device_.failed(done.error().line());
}

void CudaBackendImpl::dispatch(const Op& op) {
  const spec::ModelSpec& m = program_->model;
  const step::SequencePart part = program_->sequence_part();
  switch (op.kind) {
    case OpKind::kEmbed:
      return embed(device_, tokens(op.in[0]), op.first_token, at(op.in, 1), at(op.in, 2), part,
                   at(op.out, 0));
    case OpKind::kEmbedGrad:
      return embed_grad(device_, tokens(op.in[0]), op.first_token,
                        batches_.index_of(address(op.in[0])), at(op.in, 1), at(op.out, 0),
                        op.adds_to(0));
    case OpKind::kPositionsGrad:
      return positions_grad(device_, at(op.in, 0), part, at(op.out, 0), op.adds_to(0));
    case OpKind::kNorm:
    case OpKind::kNormGrad:
    case OpKind::kHeadNorm:
    case OpKind::kHeadNormGrad:
      return execute_norm(op);
    case OpKind::kMatmul: {
      const Product product = product_of(op);
      const Matrix residual = op.residual ? product.addend : Matrix{};
      device_.executed(
          op.kind, {product.a, product.b, residual, product.bias, product.scale_a, product.scale_b},
          {product.c});
      return products_.multiply(device_, product);
    }
    case OpKind::kScale:
      return scale(device_, at(op.in, 0), at(op.in, 1), at(op.out, 0));
    case OpKind::kQuantise: {
      const bool both = op.out.size() == 2;
      return quantise(device_, at(op.in, 0), at(op.in, 1), {at(op.in, 2), op.pieces},
                      op.transpose_a ? Matrix{} : at(op.out, 0),
                      op.transpose_a ? at(op.out, 0) : at(op.out, both ? 1 : 2));
    }
    case OpKind::kBiasGrad:
      return bias_grad(device_, at(op.in, 0), at(op.out, 0), op.adds_to(0));
    case OpKind::kRotate:
    case OpKind::kRotateGrad:
      return rotate(device_, {program_->choices.sequence, m.head_dim, part},
                    op.kind == OpKind::kRotate ? 1 : -1, at(op.out, 0));
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
      return execute_attention(op);
    case OpKind::kPackKeys:
    case OpKind::kOrderKeys:
    case OpKind::kSplitKeysGrad:
    case OpKind::kSumKeysGrad:
      return execute_context(op);
    case OpKind::kActivate:
      return activate(device_, m.mlp, at(op.in, 0), row_weights(op, 1), at(op.out, 0));
    case OpKind::kActivateGrad: {
      const RowWeights by = row_weights(op, 2);
      return activate_grad(device_, m.mlp, at(op.in, 0), at(op.in, 1), by, at(op.out, 0),
                           by.empty() ? Matrix{} : at(op.out, 1), at(op.out, by.empty() ? 1 : 2));
    }
    case OpKind::kRoute:
    case OpKind::kRouteGrad:
    case OpKind::kSortRows:
    case OpKind::kGatherRows:
    case OpKind::kGroupedMatmul:
    case OpKind::kCombineRows:
    case OpKind::kArrangeRows:
    case OpKind::kPermuteRows:
      return execute_mixture(op);
    case OpKind::kLossTerms:
      return loss_terms(device_, vocabulary_of(*program_, op), at(op.in, 0), tokens(op.in[1]),
                        at(op.out, 0));
    case OpKind::kSum:
      return sum(device_, at(op.in, 0), op.residual ? at(op.in, 1) : Matrix{},
                 op.bias ? at(op.in, op.residual ? 2 : 1) : Matrix{}, at(op.out, 0));
    case OpKind::kLoss: {
      const LossWeights weights{static_cast<float>(1.0 / settings_.counted_targets),
                                static_cast<float>(settings_.z_loss)};
      return loss(device_, vocabulary_of(*program_, op), at(op.in, 0), tokens(op.in[1]),
                  at(op.in, 2), weights, program_->choices.purpose == step::Purpose::kTrain,
                  at(op.out, 1), op.adds_to(1));
    }
    case OpKind::kFold:
    case OpKind::kNormSums:
    case OpKind::kGradientNorm:
    case OpKind::kAdamw:
    case OpKind::kMuon:
    case OpKind::kBalance:
    case OpKind::kStepSums:
      return execute_optimizer(op);
    case OpKind::kRead:
      return;  // see set_batch()
    case OpKind::kAllGather:
    case OpKind::kAllToAll:
    case OpKind::kExchangeRows:
    case OpKind::kSend:
    case OpKind::kReceive:
    case OpKind::kWait:
      return exchange(op);
  }
}

}  // namespace assay::train::cuda
