// Sorts rows received from other ranks by this rank's experts, and back (step/expert_exchange.h).
//   1  one block sums the counts: where the rows of each rank and expert begin, in both orders
//   2  each received row finds its segment, and thus its position
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kArrangeThreads = 256;

struct ArrangeArguments {
  const std::int32_t* sent;      // [rank][own expert]
  const std::int32_t* received;  // [rank][own expert]
  std::int32_t* first_rows;      // [own expert][rank], and the end
  std::int32_t* sources;         // the received row at each position
  std::int32_t* places;          // the position of each received row
  std::int32_t* begins;          // of segments in received order, then the end
  std::int32_t* starts;          // of the same segments, in expert order
  ArrangedOnHost on_host;
  int ranks;
  int experts;  // of this rank
  int rows;
};

// There are at most kMostExperts counts: each thread sums all counts before its own.
__global__ void __launch_bounds__(static_cast<int>(kMostExperts))
    segments_kernel(ArrangeArguments a) {
  __shared__ std::int32_t counts[kMostExperts];
  const int segments = a.ranks * a.experts;
  const int own = static_cast<int>(threadIdx.x);
  if (own < segments) counts[own] = a.received[own];
  __syncthreads();
  if (own < segments) {
    std::int32_t begin = 0;
    for (int i = 0; i < own; ++i) begin += counts[i];
    a.begins[own] = begin;
    if (own == segments - 1) a.begins[segments] = begin + counts[own];
    const int rank = own / a.experts;
    const int expert = own % a.experts;
    std::int32_t start = 0;
    for (int e = 0; e <= expert; ++e) {
      const int last = e < expert ? a.ranks : rank;
      for (int r = 0; r < last; ++r) start += counts[r * a.experts + e];
    }
    a.starts[own] = start;
    const int piece = expert * a.ranks + rank;
    a.first_rows[piece] = start;
    a.on_host.first_rows[piece] = start;
    if (own == segments - 1) {
      a.first_rows[segments] = start + counts[own];
      a.on_host.first_rows[segments] = start + counts[own];
    }
  }
  if (own >= a.ranks) return;
  std::int32_t sent = 0;
  std::int32_t received = 0;
  for (int e = 0; e < a.experts; ++e) {
    sent += a.sent[own * a.experts + e];
    received += counts[own * a.experts + e];
  }
  a.on_host.sent[own] = sent;
  a.on_host.received[own] = received;
}

__global__ void __launch_bounds__(kArrangeThreads) places_kernel(ArrangeArguments a) {
  const int row = static_cast<int>(blockIdx.x) * kArrangeThreads + static_cast<int>(threadIdx.x);
  if (row >= a.rows) return;
  const int segments = a.ranks * a.experts;
  if (row >= a.begins[segments]) {  // an unused row
    a.sources[row] = -1;
    a.places[row] = -1;
    return;
  }
  int low = 0;  // the last segment that begins at or before this row; empty ones precede it
  int high = segments;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (a.begins[middle] <= row ? low : high) = middle;
  }
  const std::int32_t place = a.starts[low] + row - a.begins[low];
  // After a failed exchange, counts may be arbitrary.
  if (place < 0 || place >= a.rows) {
    a.places[row] = -1;
    return;
  }
  a.places[row] = place;
  a.sources[place] = row;
}

// Each thread copies one piece of a row.
template <class Piece>
__global__ void __launch_bounds__(kArrangeThreads)
    permute_kernel(const std::byte* x, std::int64_t x_pitch, const std::int32_t* index,
                   std::byte* rows, std::int64_t rows_pitch, unsigned pieces, std::uint64_t all) {
  const std::uint64_t item = static_cast<std::uint64_t>(blockIdx.x) * kArrangeThreads + threadIdx.x;
  if (item >= all) return;
  const auto row = static_cast<std::int64_t>(item / pieces);
  const auto at = static_cast<std::int64_t>(item % pieces);
  const std::int32_t from = index[row];
  if (from < 0) return;
  reinterpret_cast<Piece*>(rows + row * rows_pitch)[at] =
      reinterpret_cast<const Piece*>(x + from * x_pitch)[at];
}

template <class Piece>
void permute(Device& device, std::int64_t element, Matrix x, Matrix index, Matrix rows) {
  const auto pieces =
      static_cast<unsigned>(rows.cols * element / static_cast<std::int64_t>(sizeof(Piece)));
  const std::int64_t all = rows.rows * pieces;
  permute_kernel<Piece><<<blocks_for(all, kArrangeThreads), kArrangeThreads, 0, device.stream>>>(
      x.as<std::byte>(), x.stride * element, index.as<std::int32_t>(), rows.as<std::byte>(),
      rows.stride * element, pieces, static_cast<std::uint64_t>(all));
  device.launched("order of rows");
}

}  // namespace

void arrange_rows(Device& device, Matrix sent, Matrix received, Matrix first_rows, Matrix sources,
                  Matrix places, const ArrangedOnHost& on_host) {
  device.executed(step::OpKind::kArrangeRows, {sent, received}, {first_rows, sources, places});
  if (on_host.first_rows == nullptr || on_host.sent == nullptr || on_host.received == nullptr) {
    return;  // has failed
  }
  ArrangeArguments a{};
  a.sent = sent.as<std::int32_t>();
  a.received = received.as<std::int32_t>();
  a.first_rows = first_rows.as<std::int32_t>();
  a.sources = sources.as<std::int32_t>();
  a.places = places.as<std::int32_t>();
  a.begins = static_cast<std::int32_t*>(device.workspace.routing);
  a.starts = a.begins + kMostExperts + 1;
  a.on_host = on_host;
  a.ranks = static_cast<int>(received.rows);
  a.experts = static_cast<int>(received.cols);
  a.rows = static_cast<int>(sources.rows);
  segments_kernel<<<1, static_cast<int>(kMostExperts), 0, device.stream>>>(a);
  places_kernel<<<blocks_for(a.rows, kArrangeThreads), kArrangeThreads, 0, device.stream>>>(a);
  device.launched("order of received rows");
}

void permute_rows(Device& device, bool fp32, Matrix x, Matrix index, Matrix rows) {
  device.executed(step::OpKind::kPermuteRows, {x, index}, {rows});
  if (fp32) return permute<std::uint32_t>(device, 4, x, index, rows);
  permute<uint4>(device, 2, x, index, rows);
}

}  // namespace assay::train::cuda
