// CudaBackendImpl::draw: initial weights, drawn directly in device memory.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "train/cuda/cuda_backend_impl.h"
#include "train/cuda/draw.h"
#include "train/init.h"

namespace assay::train::cuda {
namespace {

// Among 2^32 elements a thousand are expected; if the list overflows, the host draws the weights.
constexpr std::size_t kMostUncertain = std::size_t{1} << 18U;

// At the beginning of the workspace for matrix products, which is free between ops.
struct DrawMemory {
  std::uint64_t count = 0;
  std::int64_t elements[kMostUncertain] = {};
  Known known[kMostUncertain] = {};
};

}  // namespace

base::Result<bool> CudaBackendImpl::draw(const InitialDraw& draw) {
  wait_for_copy();
  set_has_first_weights(false);
  ASSAY_CHECK(static_cast<std::size_t>(device_.workspace.products_bytes) >= sizeof(DrawMemory),
              "the workspace of products holds the list");
  auto* memory = static_cast<DrawMemory*>(device_.workspace.products);
  const auto half = [&](const step::View& view) {
    ASSAY_CHECK(view.rows == 1 || view.stride == view.cols, "state must be contiguous");
    return reinterpret_cast<std::uint16_t*>(address(view));
  };
  const NormalNumbers numbers{.seed = draw.seed,
                              .name = draw_name(draw.parameter.name),
                              .deviation = draw.parameter.init_std};
  std::int64_t done = 0;
  for (const checkpoint::ElementRange& piece : draw.pieces) {
    const DrawnRuns runs{.first = piece.first,
                         .count = piece.count,
                         .run = piece.in_runs() ? piece.run : piece.count,
                         .apart = piece.apart};
    // The low halves that belong to this piece.
    DrawnTo to{.high = half(draw.weight) + done};
    if (draw.remainder) {
      const step::Range low =
          step::Range{draw.remainder_at, draw.remainder->elements()}.common({done, piece.count});
      if (low.count > 0) {
        to.low = half(*draw.remainder) + (low.first - draw.remainder_at);
        to.low_first = low.first - done;
        to.low_count = low.count;
      }
    }
    done += piece.count;
    device_.check(cudaMemsetAsync(&memory->count, 0, sizeof memory->count, device_.stream), "draw");
    cuda::draw(device_, numbers, runs, to, {&memory->count, memory->elements, kMostUncertain});
    std::uint64_t count = 0;
    ASSAY_TRY_VOID(copy_now(&count, &memory->count, sizeof count));
    if (count > kMostUncertain) return false;
    if (count == 0) continue;
    std::vector<std::int64_t> elements(count);
    ASSAY_TRY_VOID(copy_now(elements.data(), memory->elements, count * sizeof(std::int64_t)));
    std::vector<Known> known;
    for (const std::int64_t i : elements) {
      float value = 0;
      initial_values(draw.parameter, draw.seed, runs.element(i), {&value, 1});
      known.push_back({.element = i, .value = value});
    }
    ASSAY_TRY_VOID(copy_now(memory->known, known.data(), known.size() * sizeof(Known)));
    put(device_, memory->known, static_cast<std::int64_t>(count), to);
  }
  device_.check(cudaStreamSynchronize(device_.stream), "initial weights");
  ASSAY_TRY_VOID(outcome());
  return true;
}

}  // namespace assay::train::cuda
