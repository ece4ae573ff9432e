// The router of a mixture: which experts a token chooses, with which weights, and the gradient of
// its logits. A warp handles one token; each lane has every 32nd expert.
//
// Computed in fp64, of which these GPUs have half the rate of fp32, and a router needs little: so
// the choice is the same as on a CPU (train/cpu/mixture.cc), including ties, except where the
// sigmoids of two experts differ by less than 1e-15. Sums over tokens are computed within each
// block, then over the blocks in order; only integers are counted in the order in which threads
// arrive.
#include <climits>

#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kRouteWarps = kRouteThreads / kWarp;
constexpr int kRouteSumThreads = 1024;

// The router's scores of a token's experts.
template <int kEach>
struct Scores {
  float logit[kEach];
  double value[kEach];  // probability, or sigmoid
  double share[kEach];  // of the sum of exponentials
  double total;         // of all values
  double log_z;
  double most;  // largest logit
  double sum;   // of exponentials

  __device__ Scores(const float* logits, int experts, bool softmax) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    float largest = -INFINITY;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int expert = lane + i * kWarp;
      logit[i] = expert < experts ? logits[expert] : -INFINITY;
      largest = fmaxf(largest, logit[i]);
    }
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(kEveryLane, largest, offset));
    }
    most = static_cast<double>(largest);
    double own = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      share[i] = lane + i * kWarp < experts ? exp(static_cast<double>(logit[i]) - most) : 0.0;
      own += share[i];
    }
    sum = warp_sum(own);
    log_z = most + log(sum);
    double values = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      share[i] /= sum;
      value[i] = softmax                      ? share[i]
                 : lane + i * kWarp < experts ? 1 / (1 + exp(-static_cast<double>(logit[i])))
                                              : 0.0;
      values += value[i];
    }
    total = warp_sum(values);
  }
  // The score of any expert, from its logit.
  [[nodiscard]] __device__ double score_of(float logit, bool softmax) const {
    return softmax ? exp(static_cast<double>(logit) - most) / sum
                   : 1 / (1 + exp(-static_cast<double>(logit)));
  }
};

struct RouteArguments {
  const float* logits;
  const Half* bias;  // added for the choice only; or null
  float* weights;
  std::int32_t* chosen;
  double* sums;         // one row per block: probabilities of experts, squares of log Z
  std::int32_t* slots;  // one row per block: slots per expert
  int tokens;
  int experts;
  int per_token;
  bool softmax;
  bool normalise;
  double scale;
};

// The best of all lanes' candidates; ties go to the lowest number.
__device__ int best_of_warp(double rank, int expert) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const double other_rank = __shfl_xor_sync(kEveryLane, rank, offset);
    const int other = __shfl_xor_sync(kEveryLane, expert, offset);
    if (other_rank > rank || (other_rank == rank && other < expert)) {
      rank = other_rank;
      expert = other;
    }
  }
  return expert;
}

template <int kEach>
__global__ void __launch_bounds__(kRouteThreads) route_kernel(RouteArguments a) {
  __shared__ std::int32_t counts[kEach * kWarp];
  __shared__ double shared[kRouteWarps][kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int i = static_cast<int>(threadIdx.x); i < kEach * kWarp; i += kRouteThreads) counts[i] = 0;
  float bias[kEach];
  double probability[kEach] = {};
  double squares = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = lane + i * kWarp;
    bias[i] = a.bias != nullptr && expert < a.experts ? widen(a.bias[expert]) : 0.0F;
  }
  __syncthreads();
  for (int token = static_cast<int>(blockIdx.x) * kRouteWarps + warp; token < a.tokens;
       token += static_cast<int>(gridDim.x) * kRouteWarps) {
    const Scores<kEach> scores(a.logits + std::int64_t{token} * a.experts, a.experts, a.softmax);
    int slot[kEach];  // the slot that chose the lane's expert, or -1
#pragma unroll
    for (int i = 0; i < kEach; ++i) slot[i] = -1;
    for (int j = 0; j < a.per_token; ++j) {
      double best = -INFINITY;
      int expert = INT_MAX;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (slot[i] >= 0 || lane + i * kWarp >= a.experts) continue;
        // Compares logits rather than probabilities: those of far lower logits are all zero.
        double rank = a.softmax ? static_cast<double>(scores.logit[i])
                                : scores.value[i] + static_cast<double>(bias[i]);
        if (isnan(rank)) rank = -INFINITY;  // every lane must reach the same result
        if (expert == INT_MAX || rank > best) {
          best = rank;
          expert = lane + i * kWarp;
        }
      }
      expert = best_of_warp(best, expert);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (expert == lane + i * kWarp) slot[i] = j;
      }
    }
    double own = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) own += slot[i] >= 0 ? scores.value[i] : 0.0;
    const double of_chosen = warp_sum(own);
    const double scale = a.scale / (a.normalise ? of_chosen : 1.0);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      probability[i] += scores.value[i] / scores.total;
      if (slot[i] < 0) continue;
      const std::int64_t at = std::int64_t{token} * a.per_token + slot[i];
      a.weights[at] = static_cast<float>(scale * scores.value[i]);
      a.chosen[at] = lane + i * kWarp;
      atomicAdd(&counts[lane + i * kWarp], 1);
    }
    squares += scores.log_z * scores.log_z;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < a.experts; i += kRouteThreads) {
    a.slots[static_cast<std::int64_t>(blockIdx.x) * a.experts + i] = counts[i];
  }
  double* row = a.sums + static_cast<std::int64_t>(blockIdx.x) * (a.experts + 1);
#pragma unroll
  for (int i = 0; i <= kEach; ++i) {
    shared[warp][lane] = i < kEach ? probability[i < kEach ? i : 0] : squares;
    __syncthreads();
    const int expert = i < kEach ? lane + i * kWarp : a.experts;
    if (warp == 0 && (i < kEach ? expert < a.experts : lane == 0)) {
      double all = 0;
      for (int w = 0; w < kRouteWarps; ++w) all += shared[w][lane];
      row[expert] = all;
    }
    __syncthreads();
  }
}

struct RouteSumArguments {
  const double* sums;
  const std::int32_t* slots;
  int blocks;
  int tokens;
  int experts;
  int per_token;
  double most_rows;
  float* counts;
  float* totals;  // balance, squares of log Z, dropped slots; or null
  float* loads;
  bool adds_totals;
  bool adds_loads;
};

// Sums over blocks in order: one block of threads, in which each warp has every 32nd.
__global__ void __launch_bounds__(kRouteSumThreads) route_sum_kernel(RouteSumArguments a) {
  constexpr int kWarps = kRouteSumThreads / kWarp;
  __shared__ double sums[kWarps][kWarp + 1];
  __shared__ std::int32_t slots[kWarps][kWarp + 1];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  double balance = 0;
  double squares = 0;
  double dropped = 0;
  // One element more than experts: the squares of log Z.
  for (int first = 0; first <= a.experts; first += kWarp) {
    const int expert = first + lane;
    double sum = 0;
    std::int32_t slot = 0;
    for (int block = warp; block < a.blocks; block += kWarps) {
      if (expert <= a.experts) sum += a.sums[std::int64_t{block} * (a.experts + 1) + expert];
      if (expert < a.experts) slot += a.slots[std::int64_t{block} * a.experts + expert];
    }
    sums[warp][lane] = sum;
    slots[warp][lane] = slot;
    __syncthreads();
    if (warp == 0) {
      sum = 0;
      slot = 0;
      for (int w = 0; w < kWarps; ++w) {
        sum += sums[w][lane];
        slot += slots[w][lane];
      }
      if (expert == a.experts) squares = sum;
      if (expert < a.experts) {
        const auto count = static_cast<float>(slot);
        a.counts[expert] = count;
        if (a.loads != nullptr) {
          a.loads[expert] = (a.adds_loads ? a.loads[expert] : 0.0F) + count;
        }
        balance += static_cast<double>(slot) * sum;
        dropped += fmax(0.0, static_cast<double>(slot) - a.most_rows);
      }
    }
    __syncthreads();
  }
  if (warp != 0 || a.totals == nullptr) return;
  const double scale = static_cast<double>(a.experts) /
                       (static_cast<double>(a.tokens) * static_cast<double>(a.per_token));
  const double values[3] = {warp_sum(balance) * scale, warp_sum(squares), warp_sum(dropped)};
  if (lane != 0) return;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    a.totals[i] = (a.adds_totals ? a.totals[i] : 0.0F) + static_cast<float>(values[i]);
  }
}

struct RouteGradArguments {
  const float* logits;
  const std::int32_t* chosen;
  const std::int32_t* rows;  // the row of each slot
  const float* counts;
  const float* dweights;
  Half* dlogits;
  Half* dbias;  // or null
  int tokens;
  int experts;
  int per_token;
  bool softmax;
  bool normalise;
  bool adds_losses;
  double scale;
  double balance;  // coefficients of the two losses
  double z;
};

template <int kEach>
__global__ void __launch_bounds__(kRouteThreads) route_grad_kernel(RouteGradArguments a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  float count[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = lane + i * kWarp;
    count[i] = expert < a.experts ? a.counts[expert] : 0.0F;
    if (a.dbias == nullptr || blockIdx.x != 0 || warp != 0 || expert >= a.experts) continue;
    // The relative deviation of the load from its mean.
    const double even = static_cast<double>(a.tokens) * a.per_token / a.experts;
    const double above = static_cast<double>(count[i]) / even - 1;
    a.dbias[expert] = narrow(a.adds_losses ? static_cast<float>(above) : 0.0F);
  }
  for (int token = static_cast<int>(blockIdx.x) * kRouteWarps + warp; token < a.tokens;
       token += static_cast<int>(gridDim.x) * kRouteWarps) {
    const float* logits = a.logits + std::int64_t{token} * a.experts;
    const std::int64_t first_slot = std::int64_t{token} * a.per_token;
    const Scores<kEach> scores(logits, a.experts, a.softmax);
    const auto dweight_of = [&](int j) {
      return a.rows[first_slot + j] >= 0 ? static_cast<double>(a.dweights[first_slot + j]) : 0.0;
    };
    // d(sum of counts x probability), where probability = score / total.
    double mean = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      mean += static_cast<double>(count[i]) * scores.value[i] / scores.total;
    }
    mean = warp_sum(mean);
    double d[kEach];  // gradients of scores
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      d[i] = a.balance * (static_cast<double>(count[i]) - mean) / scores.total;
    }
    double of_chosen = 0;
    double weighted = 0;
    for (int j = lane; j < a.per_token; j += kWarp) {
      const double score = scores.score_of(logits[a.chosen[first_slot + j]], a.softmax);
      of_chosen += score;
      weighted += score * dweight_of(j);
    }
    of_chosen = warp_sum(of_chosen);
    weighted = warp_sum(weighted);
    for (int j = 0; j < a.per_token; ++j) {
      const double dw = dweight_of(j);
      const double by = a.scale * (a.normalise ? (dw - weighted / of_chosen) / of_chosen : dw);
      const int expert = a.chosen[first_slot + j];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (expert == lane + i * kWarp) d[i] += by;
      }
    }
    double inner = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) inner += d[i] * scores.value[i];
    inner = warp_sum(inner);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int expert = lane + i * kWarp;
      if (expert >= a.experts) continue;
      const double s = scores.value[i];
      const double through = a.softmax ? s * (d[i] - inner) : d[i] * s * (1 - s);
      const double gradient = through + a.z * scores.share[i] * scores.log_z;
      a.dlogits[std::int64_t{token} * a.experts + expert] = narrow(static_cast<float>(gradient));
    }
  }
}

// Calls visit with the number of experts per lane as a compile-time constant.
template <class Visit>
void with_each(std::int64_t experts, Visit visit) {
  if (experts <= kWarp) return visit(std::integral_constant<int, 1>{});
  if (experts <= 2 * kWarp) return visit(std::integral_constant<int, 2>{});
  if (experts <= 4 * kWarp) return visit(std::integral_constant<int, 4>{});
  if (experts <= 8 * kWarp) return visit(std::integral_constant<int, 8>{});
  visit(std::integral_constant<int, kMostExperts / kWarp>{});
}

int route_blocks(std::int64_t tokens) {
  const auto needed = static_cast<int>((tokens + kRouteWarps - 1) / kRouteWarps);
  return needed < kRouteBlocks ? needed : kRouteBlocks;
}

}  // namespace

void route(Device& device, const Routing& routing, Matrix logits, Matrix bias, Matrix weights,
           Matrix experts, Matrix counts, Matrix sums, bool adds_sums, Matrix loads,
           bool adds_loads) {
  device.executed(step::OpKind::kRoute, {logits, bias}, {weights, experts, counts, sums, loads});
  RouteArguments a{};
  a.logits = logits.as<float>();
  a.bias = bias.as<Half>();
  a.weights = weights.as<float>();
  a.chosen = experts.as<std::int32_t>();
  a.sums = static_cast<double*>(device.workspace.routing);
  a.slots = reinterpret_cast<std::int32_t*>(a.sums + kRouteBlocks * (logits.cols + 1));
  a.tokens = static_cast<int>(logits.rows);
  a.experts = static_cast<int>(logits.cols);
  a.per_token = static_cast<int>(experts.cols);
  a.softmax = routing.router == spec::Router::kSoftmax;
  a.normalise = routing.normalise;
  a.scale = routing.scale;
  const int blocks = route_blocks(logits.rows);
  with_each(logits.cols, [&](auto each) {
    route_kernel<decltype(each)::value><<<blocks, kRouteThreads, 0, device.stream>>>(a);
  });
  route_sum_kernel<<<1, kRouteSumThreads, 0, device.stream>>>(
      {a.sums, a.slots, blocks, a.tokens, a.experts, a.per_token,
       static_cast<double>(routing.most_rows), counts.as<float>(), sums.as<float>(),
       loads.as<float>(), adds_sums, adds_loads});
  device.launched("choice of experts");
}

void route_grad(Device& device, const Routing& routing, const RouterLosses& losses, Matrix logits,
                Matrix weights, Matrix experts, Matrix rows, Matrix counts, Matrix dweights,
                Matrix dlogits, Matrix dbias) {
  device.executed(step::OpKind::kRouteGrad, {logits, weights, experts, rows, counts, dweights},
                  {dlogits, dbias});
  RouteGradArguments a{};
  a.logits = logits.as<float>();
  a.chosen = experts.as<std::int32_t>();
  a.rows = rows.as<std::int32_t>();
  a.counts = counts.as<float>();
  a.dweights = dweights.as<float>();
  a.dlogits = dlogits.as<Half>();
  a.dbias = dbias.as<Half>();
  a.tokens = static_cast<int>(logits.rows);
  a.experts = static_cast<int>(logits.cols);
  a.per_token = static_cast<int>(experts.cols);
  a.softmax = routing.router == spec::Router::kSoftmax;
  a.normalise = routing.normalise;
  a.adds_losses = losses.added;
  a.scale = routing.scale;
  if (losses.added) {
    // The gradient of a micro-batch's balance loss, a mean over its tokens, as part of the step's
    // mean.
    const auto slots = static_cast<double>(experts.rows * experts.cols);
    a.balance = losses.balance * static_cast<double>(logits.cols) / slots / routing.step_tokens;
    a.z = 2 * losses.z / routing.step_tokens;
  }
  with_each(logits.cols, [&](auto each) {
    route_grad_kernel<decltype(each)::value>
        <<<route_blocks(logits.rows), kRouteThreads, 0, device.stream>>>(a);
  });
  device.launched("gradient of the router");
}

}  // namespace assay::train::cuda
