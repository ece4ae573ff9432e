#include "plan/model/layer_pieces.h"

namespace assay::plan {
namespace {

// Elements per token and element of the width: two norms of 2, and two residuals with dropout of
// 3.5 each.
constexpr double kNormElements = 4;
constexpr double kResidualElements = 11;
constexpr double kStreamElements = 6;
// Bytes per score that pass_score counts: written 2, softmax 4, dropout 5, read 2, less what stays
// in registers; and backward.
constexpr double kScoreBytesForward = 11;
constexpr double kScoreBytesBackward = 19;
// Backward, attention's products are five where forward they are two.
constexpr double kFlashBackward = 2.5;
// Bytes of a weight that is read where it was gathered and written where it is used, and of a
// gradient that is written and read.
constexpr double kCopied = 4;
constexpr double kMadeAndRead = 4;
constexpr double kFittedHead = 128;  // that attn_eff is of

// Keys that a query sees on average: half of the sequence, or of what a window leaves.
double mean_keys(const Work& work) {
  const double sequence = work.batch.sequence;
  const double share = work.shape.windowed_share;
  if (share <= 0) return sequence / 2;
  const double window = work.shape.window;
  return (1 - share) * sequence / 2 + share * (window - window * window / (2 * sequence));
}

AttentionTime score_attention(const Work& work, const RankShare& rank, const Constants& constants) {
  const double sequence = work.batch.sequence;
  const double head_dim = work.shape.head_dim;
  const double heads =
      work.batch.micro_batch * work.shape.heads / work.degrees.tp / work.degrees.cp;
  const double scores = heads * sequence * sequence;
  const double products = heads * 2 *
                          (sequence * sequence * (head_dim + constants.gemm_k0) +
                           sequence * head_dim * (sequence + constants.gemm_k0)) /
                          rank.head.flops;
  const double byte =
      scores * constants.pass_score / rank.memory_rate * cache_miss(2 * scores, work.card.cache);
  return {{products, 2 * products}, {kScoreBytesForward * byte, kScoreBytesBackward * byte}};
}

double pass_factor(const Software& software, const Constants& constants) {
  if (software.fused) return constants.pass_comp;
  return software.megatron_fused ? constants.pass_eager : constants.pass_torch;
}

}  // namespace

LayerProducts layer_products(const Work& work, const RankShare& rank, const Constants& constants) {
  const Shape& shape = work.shape;
  const double tp = work.degrees.tp;
  const auto linear = [&](double n, double k) {
    return linear_seconds(rank.tokens, n, k, rank.products, rank.trained, constants);
  };
  const double columns = shape.latent_qkv > 0 ? shape.latent_qkv / tp : rank.qkv;
  LayerProducts products{.all = linear(columns, shape.dim)};
  products.all += linear(shape.dim, shape.attention_out / tp);
  const double dense = 1 - rank.moe_share;
  if (dense > 0) {
    const TwoWays up = linear((shape.mlp_matrices - 1) * shape.ffn / tp, shape.dim);
    const TwoWays down = linear(shape.dim, shape.ffn / tp);
    products.all += {dense * (up.forward + down.forward), dense * (up.backward + down.backward)};
    products.up = dense * up.forward;
    products.down = dense * down.forward;
  }
  return products;
}

AttentionTime attention_time(const Work& work, const RankShare& rank, const Constants& constants) {
  if (!work.software.flash) return score_attention(work, rank, constants);
  const double flops =
      4 * rank.tokens * mean_keys(work) * work.shape.heads * work.shape.head_dim / work.degrees.tp;
  // The softmax of a score takes the time of so many elements of a head's width.
  const double softmax = constants.attn_softmax / work.card.exponentials;
  double rate = rank.head.flops * constants.attn_eff * (1 + constants.attn_softmax / kFittedHead) /
                (1 + softmax / work.shape.head_dim);
  if (work.software.old_attention) rate *= constants.attn_old;
  if (work.software.triton_attention) rate *= constants.attn_tri;
  return {{flops / rate, kFlashBackward * flops / (rate * constants.attn_bwd)}, {}};
}

TwoWays parameter_passes(const Work& work, const RankShare& rank, const Constants& constants) {
  const Software& software = work.software;
  if (software.framework == Framework::kAssay || !rank.trained) return {};
  const Shape& shape = work.shape;
  const Degrees& degrees = work.degrees;
  const double dense = shape.body_parameters / shape.layers - rank.expert_parameters;
  const double parameters =
      dense / degrees.tp + rank.expert_parameters / rank.expert_cut / degrees.ep;
  const double sum = software.gradient_bytes;
  double forward = 0;
  double backward = 0;
  if (degrees.fsdp > 1) {
    forward = software.copies_gathered ? kCopied : 0;
    backward = (software.gathers_once ? 0 : forward) + kMadeAndRead + sum;
  } else if (software.fused_accumulation) {
    backward = 2 * sum;
  } else if (work.batch.micros > 1 && software.adds_gradients) {
    backward = kMadeAndRead + 2 * sum;
  } else {
    backward = sum;
  }
  const double each = constants.grad_adds * parameters / rank.memory_rate;
  return {forward * each, backward * each};
}

LayerPasses layer_passes(const Work& work, const RankShare& rank, const Constants& constants) {
  const Shape& shape = work.shape;
  const double tp = work.degrees.tp;
  const double tokens = rank.tokens;
  const double dim = shape.dim / rank.sequence_cut;
  const double ffn = rank.ffn / tp;
  const double heads = shape.heads * shape.head_dim / tp;
  // Elements over a tensor of `width`, of two bytes each.
  const auto pass = [&](double elements, double width) {
    return 2 * tokens * elements * cache_miss(2 * tokens * width, work.card.cache) /
           rank.memory_rate;
  };
  const double factor = pass_factor(work.software, constants);
  // Streams are read before and after each half of a layer, and written.
  const double elements =
      shape.streams > 1 ? kNormElements + kStreamElements * shape.streams : kResidualElements;
  const double residual = factor * pass(elements * dim, dim * shape.streams);
  LayerPasses passes;
  passes.norms = kNormElements / elements * residual;
  passes.result = (residual - passes.norms) / 2;
  passes.activation = factor * pass(shape.mlp_matrices * ffn, ffn);
  passes.total = residual + factor * pass(rank.qkv, rank.qkv) + passes.activation;
  if (shape.state_share > 0) {
    passes.total += shape.state_share * constants.ssm_ops *
                    pass(shape.attention_out / tp, shape.attention_out / tp);
  }
  if (work.lora) {  // adapters read what the products read, and add to what they write
    passes.total += 2 * tokens *
                    (3 * shape.dim + 2 * ffn + heads +
                     3 * (rank.qkv + 2 * shape.dim + (shape.mlp_matrices - 1) * ffn)) /
                    rank.memory_rate;
  }
  if (work.fp8) {  // quantising: 3 bytes read, 2 written
    const double cast = 5 * tokens * (2 * shape.dim + heads + ffn) * constants.fp8_cast;
    passes.total += cast * (work.fp8_by_row ? 3 : 1) / rank.memory_rate;
  }
  return passes;
}

}  // namespace assay::plan
