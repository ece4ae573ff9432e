#include "plan/model/mixture_time.h"

#include <algorithm>
#include <cmath>

#include "plan/model/exchange_time.h"

namespace assay::plan {
namespace {

// Bytes of a routed token's copy that one unit of moe_ops moves, per element: four passes of bf16.
constexpr double kRoutingBytes = 8;
// Rows are permuted and quantised by their width, and the output of experts by its own.
constexpr double kExpertPasses = 1;

// Each expert's tokens fill whole tiles; one launch does all local experts.
void add_experts(const Work& work, const RankShare& rank, const Constants& constants,
                 MixtureTime& time) {
  const double dim = work.shape.expert_width();
  // Ranks of tensor parallelism share tokens where these are spread already, or else each expert.
  const bool cut = !rank.naive_experts && (!work.degrees.sequence_parallel || rank.gathers_rows);
  const double ffn = std::max(work.shape.expert_ffn, 1.0) / (cut ? work.degrees.tp : 1);
  const double up = (work.shape.mlp_matrices - 1) * ffn;
  const double each =
      rank.routed_tokens * work.shape.copies() * work.degrees.expert_load / rank.local_experts;
  const double rows = tiled_rows(rank.local_experts, each);
  const auto product = [&](double m, double n, double k) {
    return product_seconds(m, n, k, rank.products, constants);
  };
  time.up = product(rows, up, dim);
  time.down = product(rows, dim, ffn);
  time.products.forward = time.up + time.down;
  time.products.backward = product(rows, dim, up) + product(rows, ffn, dim);
  if (rank.trained) {
    time.products.backward +=
        product(rank.local_experts * up, dim, each) + product(rank.local_experts * dim, ffn, each);
  }
}

// An expert that sees every token is a dense network beside the others.
void add_shared_expert(const Work& work, const RankShare& rank, const Constants& constants,
                       MixtureTime& time) {
  const double dim = work.shape.dim;
  const double width = std::max(work.shape.shared_ffn, 1.0) / work.degrees.tp;
  const TwoWays up = linear_seconds(rank.tokens, (work.shape.mlp_matrices - 1) * width, dim,
                                    rank.products, rank.trained, constants);
  time.up += up.forward;
  time.products += up;
  const TwoWays down =
      linear_seconds(rank.tokens, dim, width, rank.products, rank.trained, constants);
  time.down += down.forward;
  time.products += down;
}

// How many of `places` (ranks, or nodes) hold some of a token's experts, on average.
double places_visited(double places, double experts) {
  return places * (1 - std::pow(1 - 1 / places, experts));
}

// Routers that choose groups of experts first send a token to no more nodes than groups.
double nodes_visited(const Shape& shape, double nodes) {
  const double spread = places_visited(nodes, shape.experts_per_token);
  return shape.expert_groups > 0 ? std::min(spread, shape.expert_groups) : spread;
}

// To the experts and back. Dispatchers made for it send a token once to a node, and there once to a
// rank, however many of its experts it holds; plain all-to-all sends a copy for each expert.
double all_to_all_seconds(const Work& work, const RankShare& rank, const Constants& constants) {
  const Degrees& degrees = work.degrees;
  if (degrees.ep <= 1) return 0;
  const double apart = rank.experts_over_tensor ? 1 : degrees.tp;
  const double members = std::clamp(std::floor(work.links.per_node() / apart), 1.0, degrees.ep);
  const double nodes = std::ceil(degrees.ep / members);
  const double experts = work.shape.experts_per_token;
  const bool once = work.software.sends_tokens_once;
  const double to_ranks = once ? places_visited(degrees.ep, experts) : experts;
  const double to_nodes = once ? nodes_visited(work.shape, nodes) : experts;
  const double bytes = 2 * work.shape.capacity * work.degrees.expert_load * rank.tokens *
                       work.shape.expert_width() / rank.sequence_cut;
  const auto seconds = [&](double sent, const RankAxis& axis) {
    return exchange_alone_seconds(step::CollectiveKind::kAllToAll, sent, axis, work.links,
                                  constants.a2a_eff);
  };
  const double inside = seconds(bytes * to_ranks / nodes, {members, apart});
  const double outside = seconds(bytes * to_nodes, {nodes, members * apart});
  const double exposed = work.software.overlaps_experts ? 1 - constants.a2a_overlap : 1;
  return 2 * (inside + outside) * exposed;
}

// Ranks that hold parts of the same experts gather the rows for them, and add up and scatter
// the output of the experts.
double gathered_rows_seconds(const Work& work, const RankShare& rank, const Constants& constants) {
  if (!rank.gathers_rows) return 0;
  const double bytes =
      2 * work.shape.copies() * work.degrees.expert_load * rank.tokens * work.shape.expert_width();
  const auto seconds = [&](step::CollectiveKind kind) {
    return exchange_seconds(kind, bytes, {.ranks = work.degrees.tp}, work.links, constants);
  };
  return seconds(step::CollectiveKind::kAllGather) + seconds(step::CollectiveKind::kReduceScatter);
}

}  // namespace

MixtureTime mixture_time(const Work& work, const RankShare& rank, const Constants& constants) {
  MixtureTime time;
  add_experts(work, rank, constants, time);
  if (work.shape.shared_ffn > 0) add_shared_expert(work, rank, constants, time);
  time.all_to_all =
      all_to_all_seconds(work, rank, constants) + gathered_rows_seconds(work, rank, constants);
  double factor = rank.naive_experts ? constants.moe_naive : 1;
  if (work.software.early_experts) factor *= constants.moe_early;
  const double ffn = work.shape.expert_ffn / (rank.gathers_rows ? work.degrees.tp : 1);
  const double width = work.shape.expert_width() + kExpertPasses * ffn;
  const double rows = rank.routed_tokens * work.shape.copies() * work.degrees.expert_load;
  time.permutation = factor * constants.moe_ops * kRoutingBytes * rows * width / rank.memory_rate;
  // Biases and clamped activations: bf16, each a separate pass.
  const double extra =
      work.shape.expert_passes * ffn + work.shape.row_passes * work.shape.expert_width();
  time.permutation += 2 * rows * extra / rank.memory_rate;
  return time;
}

}  // namespace assay::plan
