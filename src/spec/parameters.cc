#include "spec/parameters.h"

#include "base/check.h"
#include "spec/rule_error.h"

namespace assay::spec {
namespace {

class GroupList {
 public:
  void matrix(const char* name, Role role, std::int64_t rows, std::int64_t cols,
              std::int64_t count) {
    if (count > 0) groups.push_back({name, role, rows, cols, count});
  }
  void vector(const char* name, std::int64_t size, std::int64_t count) {
    if (count > 0) groups.push_back({name, Role::kVector, 1, size, count});
  }
  void expert_matrix(const char* name, std::int64_t rows, std::int64_t cols, std::int64_t count) {
    if (count > 0) groups.push_back({name, Role::kMatrix, rows, cols, count, true});
  }
  void expert_vector(const char* name, std::int64_t size, std::int64_t count) {
    if (count > 0) groups.push_back({name, Role::kVector, 1, size, count, true});
  }
  // A norm's learned parts: none, a weight, or a weight and a bias.
  void norm(const std::string& name, Norm kind, std::int64_t size, std::int64_t count) {
    if (kind == Norm::kRmsNormPlain) return;
    groups.push_back({name, Role::kVector, 1, size, count});
    if (kind == Norm::kLayerNorm) groups.push_back({name + "_bias", Role::kVector, 1, size, count});
  }

  std::vector<ParameterGroup> groups;
};

// Down to the latents, whose norms are learned, and up to the heads.
void add_latent_attention(const ModelSpec& m, GroupList& list) {
  const std::int64_t from = m.q_lora_rank > 0 ? m.q_lora_rank : m.dim;
  if (m.q_lora_rank > 0) {
    list.matrix("attn_q_down", Role::kMatrix, m.q_lora_rank, m.dim, m.layers);
    list.norm("attn_q_latent_norm", m.norm, m.q_lora_rank, m.layers);
  }
  list.matrix("attn_q", Role::kMatrix, m.q_dim(), from, m.layers);
  list.matrix("attn_kv_down", Role::kMatrix, m.kv_lora_rank + m.qk_rope_head_dim, m.dim, m.layers);
  list.norm("attn_kv_latent_norm", m.norm, m.kv_lora_rank, m.layers);
  list.matrix("attn_kv", Role::kMatrix, m.heads * (m.qk_nope_head_dim + m.v_head_dim),
              m.kv_lora_rank, m.layers);
  list.matrix("attn_o", Role::kMatrix, m.dim, m.heads * m.v_head_dim, m.layers);
}

void add_attention(const ModelSpec& m, GroupList& list) {
  list.norm("attn_norm", m.norm, m.dim, m.layers);
  if (m.has_latent_attention()) return add_latent_attention(m, list);
  list.matrix("attn_q", Role::kMatrix, m.q_dim(), m.dim, m.layers);
  list.matrix("attn_k", Role::kMatrix, m.kv_dim(), m.dim, m.layers);
  list.matrix("attn_v", Role::kMatrix, m.kv_dim(), m.dim, m.layers);
  list.matrix("attn_o", Role::kMatrix, m.dim, m.q_dim(), m.layers);
  if (m.has_qkv_bias()) list.vector("attn_qkv_bias", m.qkv_dim(), m.layers);
  if (m.bias) list.vector("attn_o_bias", m.dim, m.layers);
  if (m.qk_norm == QkNorm::kLearned) {
    list.vector("attn_q_norm", m.head_dim, m.layers);
    list.vector("attn_k_norm", m.head_dim, m.layers);
  }
}

void add_mlp(const ModelSpec& m, GroupList& list) {
  list.norm("mlp_norm", m.norm, m.dim, m.layers);
  const std::int64_t dense = m.layers - m.moe_layers();
  const std::int64_t experts = m.moe_layers() * m.experts;
  const bool gated = m.is_gated();
  list.matrix("mlp_gate", Role::kMatrix, m.ffn, m.dim, gated ? dense : 0);
  list.matrix("mlp_up", Role::kMatrix, m.ffn, m.dim, dense);
  list.matrix("mlp_down", Role::kMatrix, m.dim, m.ffn, dense);
  const std::int64_t width = m.expert_width();
  list.matrix("router", Role::kMatrix, m.experts, m.dim, m.moe_layers());
  list.expert_matrix("expert_gate", width, m.dim, gated ? experts : 0);
  list.expert_matrix("expert_up", width, m.dim, experts);
  list.expert_matrix("expert_down", m.dim, width, experts);
  if (m.shared_ffn > 0) {
    list.matrix("shared_gate", Role::kMatrix, m.shared_ffn, m.dim, gated ? m.moe_layers() : 0);
    list.matrix("shared_up", Role::kMatrix, m.shared_ffn, m.dim, m.moe_layers());
    list.matrix("shared_down", Role::kMatrix, m.dim, m.shared_ffn, m.moe_layers());
  }
  if (m.router == Router::kSigmoid) list.vector("router_bias", m.experts, m.moe_layers());
  if (!m.bias) return;
  list.vector("mlp_gate_bias", m.ffn, gated ? dense : 0);
  list.vector("mlp_up_bias", m.ffn, dense);
  list.vector("mlp_down_bias", m.dim, dense);
  list.expert_vector("expert_gate_bias", width, gated ? experts : 0);
  list.expert_vector("expert_up_bias", width, experts);
  list.expert_vector("expert_down_bias", m.dim, experts);
}

std::vector<ParameterGroup> list_groups(const ModelSpec& m) {
  GroupList list;
  list.matrix("embedding", Role::kEmbedding, m.vocab, m.dim, 1);
  if (m.positions == Positions::kLearned) {
    list.matrix("positions", Role::kEmbedding, m.context, m.dim, 1);
  }
  if (m.value_embeddings) {
    const std::int64_t layers = (m.layers + 1) / 2;
    list.matrix("value_embeddings", Role::kEmbedding, m.vocab, m.kv_dim(), layers);
    list.matrix("value_gate", Role::kMatrix, m.kv_heads, kValueGateChannels, layers);
  }
  if (m.residual_lambdas) {
    list.vector("residual_lambdas", m.layers, 1);
    list.vector("embedding_lambdas", m.layers, 1);
  }
  add_attention(m, list);
  add_mlp(m, list);
  list.norm("final_norm", m.norm, m.dim, 1);
  if (!m.tied) list.matrix("head", Role::kHead, m.vocab, m.dim, 1);
  return list.groups;
}

}  // namespace

base::Result<Parameters> count_parameters(const ModelSpec& m) {
  Parameters result;
  result.groups = list_groups(m);
  for (const ParameterGroup& group : result.groups) {
    const auto parameters = checked_product({group.rows, group.cols, group.count});
    if (!parameters || __builtin_add_overflow(result.total, *parameters, &result.total)) {
      return base::fail(base::usage_error(
          "", "the model has more parameters than 64 bits can count", "make it smaller"));
    }
    result.active += group.expert ? *parameters / m.experts * m.experts_per_token : *parameters;
    const bool matmul = group.role == Role::kMatrix || group.role == Role::kHead;
    if (matmul) result.matmul += *parameters;
  }
  if (m.tied) result.matmul += m.vocab * m.dim;
  return result;
}

Parameters parameters_of(const ModelSpec& model) {
  auto counted = count_parameters(model);
  ASSAY_CHECK(counted.has_value(), "a completed model has been counted");
  return *std::move(counted);
}

FlopsPerToken flops_per_token(const ModelSpec& model, std::int64_t sequence) {
  const Parameters parameters = parameters_of(model);
  // Scores and what is made of them are equally wide, but for latent attention.
  const auto width = static_cast<double>(model.heads * (model.head_dim + model.value_dim()));
  const double attention =
      6.0 * static_cast<double>(model.layers) * width * static_cast<double>(sequence);
  // Experts that a token is not sent to multiply nothing.
  const std::int64_t idle = parameters.total - parameters.active;
  return {6.0 * static_cast<double>(parameters.active) + attention,
          6.0 * static_cast<double>(parameters.matmul - idle) + attention};
}

base::Json to_json(const std::vector<ParameterGroup>& groups) {
  base::Json list = base::Json::array();
  for (const ParameterGroup& group : groups) {
    base::Json shape = base::Json::array();
    if (group.role != Role::kVector) shape.push_back(group.rows);
    shape.push_back(group.cols);
    list.push_back({{"name", group.name},
                    {"shape", shape},
                    {"tensors", group.count},
                    {"elements_each", group.elements_each()},
                    {"parameters", group.parameters()}});
  }
  return list;
}

}  // namespace assay::spec
