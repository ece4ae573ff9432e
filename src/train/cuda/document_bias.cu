// The document mask as a bias on the attention scores. cuDNN's graphs apply the causal mask
// themselves; this masks the keys before a query's document.
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kDocumentThreads = 256;

// Not infinite: if a query sees none of the keys in an earlier block, the block's largest score is
// subtracted from the others, and infinities would give NaN. The next block then rescales the
// result to nothing.
constexpr float kUnseen = -1e30F;

// Each thread handles eight keys of a query.
__global__ void fill_bias(const std::int32_t* documents, unsigned vectors, std::uint64_t items,
                          Half* bias) {
  const std::uint64_t item =
      static_cast<std::uint64_t>(blockIdx.x) * kDocumentThreads + threadIdx.x;
  if (item >= items) return;
  const auto query = item / vectors;
  const auto first = static_cast<int>(item - query * vectors) * 8;
  const int seen_from = documents[query];
  float values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = first + i < seen_from ? kUnseen : 0.0F;
  store8(bias + item * 8, narrow(values));
}

}  // namespace

void document_bias(Device& device, Tokens documents, Matrix bias) {
  const auto vectors = static_cast<unsigned>(bias.stride / 8);
  const std::uint64_t items = static_cast<std::uint64_t>(documents.count) * vectors;
  const unsigned blocks = blocks_for(static_cast<std::int64_t>(items), kDocumentThreads);
  fill_bias<<<blocks, kDocumentThreads, 0, device.stream>>>(documents.data, vectors, items,
                                                            bias.as<Half>());
  device.launched("document bias");
}

}  // namespace assay::train::cuda
