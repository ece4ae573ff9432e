// Keys and values with context parallelism: from the order in which ranks have them to sequence
// order, and their gradients back. Sums are computed in a fixed order in fp32.
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kContextThreads = 256;

// Rows of one rank after the other; each rank has two pieces of every sequence.
struct KeyRows {
  unsigned sequences;
  unsigned piece;
  unsigned ranks;

  struct Place {
    unsigned sequence;
    unsigned position;
  };
  __device__ Place place(unsigned row) const {
    const unsigned of_rank = 2 * piece * sequences;
    const unsigned rank = row / of_rank;
    const unsigned sequence = row % of_rank / (2 * piece);
    const unsigned at = row % (2 * piece);
    const unsigned which = at < piece ? rank : 2 * ranks - 1 - rank;
    return {sequence, which * piece + at % piece};
  }
};

// Each thread handles eight columns of a row.
struct Item {
  unsigned row;
  unsigned at;
  bool inside;
};
__device__ Item item_of(unsigned rows, unsigned vectors) {
  const std::uint64_t item = static_cast<std::uint64_t>(blockIdx.x) * kContextThreads + threadIdx.x;
  const auto row = static_cast<unsigned>(item / vectors);
  return {row, static_cast<unsigned>(item - std::uint64_t{row} * vectors) * 8, row < rows};
}

__global__ void __launch_bounds__(kContextThreads)
    pack_keys_kernel(const Half* k, std::int64_t k_stride, const Half* v, std::int64_t v_stride,
                     Half* packed, unsigned rows, unsigned width) {
  const Item item = item_of(rows, 2 * width / 8);
  if (!item.inside) return;
  const Half* from = item.at < width ? k + item.row * k_stride + item.at
                                     : v + item.row * v_stride + (item.at - width);
  store8(packed + std::int64_t{item.row} * 2 * width + item.at, load8(from));
}

__global__ void __launch_bounds__(kContextThreads)
    order_keys_kernel(const Half* by_rank, Half* in_order, unsigned rows, unsigned width,
                      KeyRows keys) {
  const Item item = item_of(rows, width / 8);
  if (!item.inside) return;
  const KeyRows::Place place = keys.place(item.row);
  const std::int64_t to =
      std::int64_t{place.sequence} * 2 * keys.piece * keys.ranks + place.position;
  store8(in_order + to * width + item.at,
         load8(by_rank + std::int64_t{item.row} * width + item.at));
}

// A piece contributes gradients to the keys that it has seen: the first ones of a sequence.
__global__ void __launch_bounds__(kContextThreads)
    split_keys_grad_kernel(const Half* first, unsigned seen_by_first, const Half* second,
                           unsigned seen_by_second, Half* by_rank, unsigned rows, unsigned width,
                           KeyRows keys) {
  const Item item = item_of(rows, width / 8);
  if (!item.inside) return;
  const KeyRows::Place place = keys.place(item.row);
  float sum[8] = {};
  const auto add = [&](const Half* gradients, unsigned seen) {
    if (place.position >= seen) return;
    const std::int64_t row = std::int64_t{place.sequence} * seen + place.position;
    float value[8];
    widen(load8(gradients + row * width + item.at), value);
#pragma unroll
    for (int j = 0; j < 8; ++j) sum[j] += value[j];
  };
  add(first, seen_by_first);
  add(second, seen_by_second);
  store8(by_rank + std::int64_t{item.row} * width + item.at, narrow(sum));
}

__global__ void __launch_bounds__(kContextThreads)
    sum_keys_grad_kernel(const Half* addends, std::int64_t stride, int ranks, Half* sum,
                         std::int64_t sum_stride, unsigned rows, unsigned width) {
  const Item item = item_of(rows, width / 8);
  if (!item.inside) return;
  const Half* from = addends + std::int64_t{item.row} * width + item.at;
  float all[8] = {};
  for (int rank = 0; rank < ranks; ++rank) {
    float value[8];
    widen(load8(from + rank * stride), value);
#pragma unroll
    for (int j = 0; j < 8; ++j) all[j] += value[j];
  }
  store8(sum + item.row * sum_stride + item.at, narrow(all));
}

unsigned context_blocks(const Matrix& m) {
  return blocks_for(m.rows * m.cols / 8, kContextThreads);
}

KeyRows key_rows(std::int64_t sequences, std::int64_t piece, const Matrix& by_rank) {
  return {static_cast<unsigned>(sequences), static_cast<unsigned>(piece),
          static_cast<unsigned>(by_rank.rows / (2 * piece * sequences))};
}

}  // namespace

void pack_keys(Device& device, Matrix k, Matrix v, Matrix packed) {
  device.executed(step::OpKind::kPackKeys, {k, v}, {packed});
  pack_keys_kernel<<<context_blocks(packed), kContextThreads, 0, device.stream>>>(
      k.as<Half>(), k.stride, v.as<Half>(), v.stride, packed.as<Half>(),
      static_cast<unsigned>(packed.rows), static_cast<unsigned>(k.cols));
  device.launched("packing keys");
}

void order_keys(Device& device, std::int64_t sequences, std::int64_t piece, Matrix by_rank,
                Matrix in_order) {
  device.executed(step::OpKind::kOrderKeys, {by_rank}, {in_order});
  order_keys_kernel<<<context_blocks(by_rank), kContextThreads, 0, device.stream>>>(
      by_rank.as<Half>(), in_order.as<Half>(), static_cast<unsigned>(by_rank.rows),
      static_cast<unsigned>(by_rank.cols), key_rows(sequences, piece, by_rank));
  device.launched("ordering keys");
}

void split_keys_grad(Device& device, std::int64_t sequences, std::int64_t piece, Matrix first,
                     Matrix second, Matrix by_rank) {
  device.executed(step::OpKind::kSplitKeysGrad, {first, second}, {by_rank});
  split_keys_grad_kernel<<<context_blocks(by_rank), kContextThreads, 0, device.stream>>>(
      first.as<Half>(), static_cast<unsigned>(first.rows / sequences), second.as<Half>(),
      static_cast<unsigned>(second.rows / sequences), by_rank.as<Half>(),
      static_cast<unsigned>(by_rank.rows), static_cast<unsigned>(by_rank.cols),
      key_rows(sequences, piece, by_rank));
  device.launched("gradients of keys by rank");
}

void sum_keys_grad(Device& device, Matrix addends, Matrix sum) {
  device.executed(step::OpKind::kSumKeysGrad, {addends}, {sum});
  sum_keys_grad_kernel<<<context_blocks(sum), kContextThreads, 0, device.stream>>>(
      addends.as<Half>(), addends.stride, static_cast<int>(addends.rows), sum.as<Half>(),
      sum.stride, static_cast<unsigned>(sum.rows), static_cast<unsigned>(sum.cols));
  device.launched("sum of gradients of keys");
}

}  // namespace assay::train::cuda
