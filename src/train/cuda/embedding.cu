// Token and position embeddings. Each row of the table's gradient is summed by one block in batch
// order, from the index of positions by token (batches.h).
#include "train/cuda/kernels.h"
#include "train/cuda/positions.cuh"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kEmbeddingThreads = 128;

__global__ void __launch_bounds__(kEmbeddingThreads)
    embed_kernel(const std::int32_t* tokens, int first_token, int rows, const Half* table,
                 const Half* positions, RowPositions in_sequence, Half* x, unsigned vectors,
                 std::uint64_t all) {
  const std::uint64_t item =
      static_cast<std::uint64_t>(blockIdx.x) * kEmbeddingThreads + threadIdx.x;
  if (item >= all) return;
  const std::uint64_t row = item / vectors;
  const std::uint64_t at = (item % vectors) * 8;
  const std::uint64_t width = std::uint64_t{vectors} * 8;
  const int token = tokens[row] - first_token;
  uint4 raw{0, 0, 0, 0};
  if (token >= 0 && token < rows) {
    raw = load8(table + static_cast<std::uint64_t>(token) * width + at);
  }
  if (positions != nullptr) {
    float value[8];
    float position[8];
    widen(raw, value);
    widen(load8(positions + std::uint64_t{in_sequence.of(row)} * width + at), position);
#pragma unroll
    for (int j = 0; j < 8; ++j) value[j] += position[j];
    raw = narrow(value);
  }
  store8(x + row * width + at, raw);
}

// `ids`, `starts`, `order`: distinct token i occurs at order[starts[i]] … of the batch.
__global__ void __launch_bounds__(kEmbeddingThreads)
    embed_grad_kernel(const std::int32_t* ids, const std::int32_t* starts,
                      const std::int32_t* order, int first_token, int rows, const Half* dx,
                      Half* dtable, unsigned vectors, bool adds) {
  const unsigned at = blockIdx.y * kEmbeddingThreads + threadIdx.x;
  const int token = ids[blockIdx.x] - first_token;
  if (at >= vectors || token < 0 || token >= rows) return;
  const std::uint64_t width = std::uint64_t{vectors} * 8;
  Half* to = dtable + static_cast<std::uint64_t>(token) * width + at * 8;
  float sum[8] = {};
  if (adds) widen(load8(to), sum);
  const int last = starts[blockIdx.x + 1];
#pragma unroll 4
  for (int i = starts[blockIdx.x]; i < last; ++i) {
    float value[8];
    widen(load8(dx + static_cast<std::uint64_t>(order[i]) * width + at * 8), value);
#pragma unroll
    for (int j = 0; j < 8; ++j) sum[j] += value[j];
  }
  store8(to, narrow(sum));
}

__global__ void __launch_bounds__(kEmbeddingThreads)
    positions_kernel(const Half* dx, unsigned rows, RowPositions part, Half* dpositions,
                     unsigned vectors, bool adds) {
  const unsigned at = blockIdx.y * kEmbeddingThreads + threadIdx.x;
  if (at >= vectors) return;
  const std::uint64_t width = std::uint64_t{vectors} * 8;
  Half* to = dpositions + blockIdx.x * width + at * 8;
  float sum[8] = {};
  if (adds) widen(load8(to), sum);
  const int first = part.row_of(blockIdx.x);
  for (auto row = static_cast<unsigned>(first); first >= 0 && row < rows; row += part.tokens) {
    float value[8];
    widen(load8(dx + row * width + at * 8), value);
#pragma unroll
    for (int j = 0; j < 8; ++j) sum[j] += value[j];
  }
  store8(to, narrow(sum));
}

}  // namespace

void embed(Device& device, Tokens tokens, std::int64_t first_token, Matrix table, Matrix positions,
           const step::SequencePart& part, Matrix x) {
  device.executed(step::OpKind::kEmbed, {tokens, table, positions}, {x});
  const auto vectors = static_cast<unsigned>(x.cols / 8);
  const auto all = static_cast<std::uint64_t>(x.rows) * vectors;
  embed_kernel<<<blocks_for(static_cast<std::int64_t>(all), kEmbeddingThreads), kEmbeddingThreads,
                 0, device.stream>>>(
      tokens.data, static_cast<int>(first_token), static_cast<int>(table.rows), table.as<Half>(),
      positions.as<Half>(), row_positions(part), x.as<Half>(), vectors, all);
  device.launched("embedding");
}

void embed_grad(Device& device, Tokens tokens, std::int64_t first_token, const TokenIndex& index,
                Matrix dx, Matrix dtable, bool adds) {
  device.executed(step::OpKind::kEmbedGrad, {tokens, dx}, {dtable});
  if (!adds) {
    const auto bytes = static_cast<std::size_t>(dtable.rows * dtable.cols) * sizeof(Half);
    device.check(cudaMemsetAsync(dtable.data, 0, bytes, device.stream), "embedding gradient");
  }
  const std::int32_t* order = index.numbers;
  const std::int32_t* starts = order + tokens.count;
  const std::int32_t* ids = starts + tokens.count + 1;
  const auto vectors = static_cast<unsigned>(dx.cols / 8);
  const dim3 blocks(static_cast<unsigned>(index.distinct), blocks_for(vectors, kEmbeddingThreads));
  embed_grad_kernel<<<blocks, kEmbeddingThreads, 0, device.stream>>>(
      ids, starts, order, static_cast<int>(first_token), static_cast<int>(dtable.rows),
      dx.as<Half>(), dtable.as<Half>(), vectors, adds);
  device.launched("embedding gradient");
}

void positions_grad(Device& device, Matrix dx, const step::SequencePart& part, Matrix dpositions,
                    bool adds) {
  device.executed(step::OpKind::kPositionsGrad, {dx}, {dpositions});
  const auto vectors = static_cast<unsigned>(dx.cols / 8);
  const dim3 blocks(static_cast<unsigned>(dpositions.rows), blocks_for(vectors, kEmbeddingThreads));
  positions_kernel<<<blocks, kEmbeddingThreads, 0, device.stream>>>(
      dx.as<Half>(), static_cast<unsigned>(dx.rows), row_positions(part), dpositions.as<Half>(),
      vectors, adds);
  device.launched("positions gradient");
}

}  // namespace assay::train::cuda
