// Cross-entropy with an optional penalty on the size of log Z, and its gradient. A block reads its
// row of logits twice and writes it once: first for the maximum and the sum of exponentials
// together, then to replace logits by gradients.
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kLossThreads = 512;
constexpr int kLossSumThreads = 1024;

// The sum of exp(x - most) over some logits.
struct Exponentials {
  float most = -INFINITY;
  float sum = 0;

  __device__ void raise(float to) {
    if (to <= most) return;
    sum *= __expf(most - to);
    most = to;
  }
  __device__ void add(const Exponentials& other) {
    if (other.sum == 0) return;  // no elements: its maximum is infinite
    raise(other.most);
    sum += other.sum * __expf(other.most - most);
  }
};

__device__ void see(Exponentials& e, const float (&x)[8]) {
  float most = x[0];
#pragma unroll
  for (int j = 1; j < 8; ++j) most = fmaxf(most, x[j]);
  e.raise(most);
#pragma unroll
  for (int j = 0; j < 8; ++j) e.sum += __expf(x[j] - e.most);
}

__device__ Exponentials over_block(Exponentials e, Exponentials (&shared)[kLossThreads / kWarp]) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    Exponentials other;
    other.most = __shfl_down_sync(kEveryLane, e.most, offset);
    other.sum = __shfl_down_sync(kEveryLane, e.sum, offset);
    e.add(other);
  }
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = e;
  __syncthreads();
  Exponentials all;
  for (int w = 0; w < kLossThreads / kWarp; ++w) all.add(shared[w]);
  return all;
}

// Calls visit(i, vector i) for this thread's share of a row with two loads in flight: the compiler
// would not move a load before a store that may alias it.
template <class Visit>
__device__ void for_vectors(const Half* row, int vectors, Visit visit) {
  for (int i = static_cast<int>(threadIdx.x); i < vectors; i += 2 * kLossThreads) {
    const bool two = i + kLossThreads < vectors;
    const uint4 first = load8(row + i * 8);
    const uint4 second = two ? load8(row + (i + kLossThreads) * 8) : uint4{0, 0, 0, 0};
    visit(i, first);
    if (two) visit(i + kLossThreads, second);
  }
}

struct LossArguments {
  Half* logits;
  std::int64_t stride;
  const std::int32_t* targets;
  const float* terms;  // of every rank, or null
  int ranks;
  double* row_sums;  // loss and squared log Z for each row
  int first_token;
  int vocab;  // columns that belong to tokens
  int cols;   // the rest is padding
  LossWeights weights;
  bool gradient;
};

__device__ void write_zeros(Half* row, int vocab) {
  for (int i = static_cast<int>(threadIdx.x); i < vocab / 8; i += kLossThreads) {
    store8(row + i * 8, uint4{0, 0, 0, 0});
  }
  const int i = vocab / 8 * 8 + static_cast<int>(threadIdx.x);
  if (i < vocab) row[i] = 0;
}

__device__ void write_gradient(Half* row, int vocab, int target, float times, float log_z,
                               float weight) {
  for_vectors(row, vocab / 8, [&](int i, const uint4& raw) {
    float x[8];
    widen(raw, x);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      x[j] = times * __expf(x[j] - log_z) - (i * 8 + j == target ? weight : 0.0F);
    }
    store8(row + i * 8, narrow(x));
  });
  const int i = vocab / 8 * 8 + static_cast<int>(threadIdx.x);
  if (i < vocab) {
    row[i] = narrow(times * __expf(widen(row[i]) - log_z) - (i == target ? weight : 0.0F));
  }
}

// For the logits on this rank.
__device__ Exponentials exponentials_of(const Half* row, int vocab,
                                        Exponentials (&shared)[kLossThreads / kWarp]) {
  Exponentials e;
  for_vectors(row, vocab / 8, [&](int, const uint4& raw) {
    float x[8];
    widen(raw, x);
    see(e, x);
  });
  const int last = vocab / 8 * 8 + static_cast<int>(threadIdx.x);
  if (last < vocab) {
    Exponentials one;
    one.most = widen(row[last]);
    one.sum = 1;
    e.add(one);
  }
  return over_block(e, shared);
}

__global__ void __launch_bounds__(kLossThreads, 3)
    loss_terms_kernel(LossArguments a, float* terms) {
  __shared__ Exponentials shared[kLossThreads / kWarp];
  const Half* row = a.logits + static_cast<std::int64_t>(blockIdx.x) * a.stride;
  const int column = a.targets[blockIdx.x] - a.first_token;
  const Exponentials e = exponentials_of(row, a.vocab, shared);
  if (threadIdx.x != 0) return;
  float* to = terms + std::int64_t{blockIdx.x} * kTerms;
  to[0] = e.most;
  to[1] = e.sum;
  to[2] = column >= 0 && column < a.vocab ? widen(row[column]) : 0.0F;
}

__global__ void __launch_bounds__(kLossThreads, 3) loss_kernel(LossArguments a) {
  __shared__ Exponentials shared[kLossThreads / kWarp];
  Half* row = a.logits + static_cast<std::int64_t>(blockIdx.x) * a.stride;
  const int target = a.targets[blockIdx.x];
  const int column = target - a.first_token;
  double* sums = a.row_sums + 2 * static_cast<std::int64_t>(blockIdx.x);
  if (target < 0) {
    if (a.gradient) write_zeros(row, a.cols);
    if (threadIdx.x == 0) sums[0] = sums[1] = 0;
    return;
  }
  float of_target = 0;
  Exponentials e;
  if (a.terms == nullptr) {
    of_target = widen(row[column]);  // before it is overwritten
    e = exponentials_of(row, a.vocab, shared);
  } else {
    for (int rank = 0; rank < a.ranks; ++rank) {
      const float* from = a.terms + (std::int64_t{rank} * gridDim.x + blockIdx.x) * kTerms;
      Exponentials of_rank;
      of_rank.most = from[0];
      of_rank.sum = from[1];
      e.add(of_rank);
      of_target += from[2];
    }
  }
  const float log_z = e.most + logf(e.sum);
  if (threadIdx.x == 0) {
    sums[0] = static_cast<double>(log_z) - static_cast<double>(of_target);
    sums[1] = static_cast<double>(log_z) * static_cast<double>(log_z);
  }
  if (!a.gradient) return;
  // d/dlogits of log Z is the softmax, so the penalty only scales it.
  const float weight = a.weights.of_token;
  write_gradient(row, a.vocab, column, weight * (1.0F + 2.0F * a.weights.z_loss * log_z), log_z,
                 weight);
  for (int pad = a.vocab + static_cast<int>(threadIdx.x); pad < a.cols; pad += kLossThreads) {
    row[pad] = 0;
  }
}

// One block sums the rows in an order that depends only on their number.
__global__ void __launch_bounds__(kLossSumThreads)
    loss_sum_kernel(const double* row_sums, const std::int32_t* targets, int rows, float* totals,
                    bool adds) {
  __shared__ double shared[3][kWarp];
  double sums[3] = {0, 0, 0};
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += kLossSumThreads) {
    sums[0] += row_sums[2 * i];
    sums[1] += row_sums[2 * i + 1];
    sums[2] += targets[i] >= 0 ? 1.0 : 0.0;
  }
  block_sum(sums, shared);
  if (threadIdx.x != 0) return;
  const int places[3] = {kLossSumIndex, kZLossSumIndex, kCountIndex};
  for (int i = 0; i < 3; ++i) {
    totals[places[i]] = (adds ? totals[places[i]] : 0.0F) + static_cast<float>(sums[i]);
  }
}

}  // namespace

namespace {

LossArguments arguments_of(const Vocabulary& vocabulary, const Matrix& logits,
                           const Tokens& targets) {
  LossArguments a{};
  a.logits = logits.as<Half>();
  a.stride = logits.stride;
  a.targets = targets.data;
  a.first_token = static_cast<int>(vocabulary.first_token);
  a.vocab = static_cast<int>(vocabulary.columns);
  a.cols = static_cast<int>(logits.cols);
  return a;
}

}  // namespace

void loss_terms(Device& device, Vocabulary vocabulary, Matrix logits, Tokens targets,
                Matrix terms) {
  device.executed(step::OpKind::kLossTerms, {logits, targets}, {terms});
  loss_terms_kernel<<<static_cast<unsigned>(logits.rows), kLossThreads, 0, device.stream>>>(
      arguments_of(vocabulary, logits, targets), terms.as<float>());
  device.launched("terms of the loss");
}

void loss(Device& device, Vocabulary vocabulary, Matrix logits, Tokens targets, Matrix terms,
          LossWeights weights, bool gradient, Matrix sums, bool adds) {
  device.executed(step::OpKind::kLoss, {logits, targets, terms}, {logits, sums});
  double* row_sums = device.workspace.sums + kSums;
  LossArguments a = arguments_of(vocabulary, logits, targets);
  a.terms = terms.as<float>();
  a.ranks = static_cast<int>(terms.rows / logits.rows);
  a.row_sums = row_sums;
  a.weights = weights;
  a.gradient = gradient;
  loss_kernel<<<static_cast<unsigned>(logits.rows), kLossThreads, 0, device.stream>>>(a);
  loss_sum_kernel<<<1, kLossSumThreads, 0, device.stream>>>(
      row_sums, targets.data, static_cast<int>(logits.rows), sums.as<float>(), adds);
  device.launched("loss");
}

}  // namespace assay::train::cuda
