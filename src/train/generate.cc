#include "train/generate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "train/float_bits.h"
#include "train/philox.h"

namespace assay::train {
namespace {

base::Result<std::vector<float>> logits_of(Backend& backend, const step::Program& program,
                                           std::int64_t row) {
  const step::View view = program.logits.rows_from(row, 1);
  std::vector<float> logits(static_cast<std::size_t>(view.cols));
  if (program.choices.numerics.activations == step::Dtype::kF32) {
    ASSAY_TRY_VOID(backend.read(view, std::as_writable_bytes(std::span(logits))));
    return logits;
  }
  std::vector<std::uint16_t> halves(logits.size());
  ASSAY_TRY_VOID(backend.read(view, std::as_writable_bytes(std::span(halves))));
  std::ranges::transform(halves, logits.begin(), from_bf16);
  return logits;
}

// Zeroes all but the most likely tokens that together have `top_p` of the sum; returns their sum.
double keep_likely(std::vector<float>& weights, double sum, double top_p) {
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return weights[i]; });
  double kept = 0;
  for (const std::size_t i : order) {
    if (kept >= top_p * sum) {
      weights[i] = 0;
    } else {
      kept += static_cast<double>(weights[i]);
    }
  }
  return kept;
}

}  // namespace

std::int32_t choose(std::vector<float>& logits, const SamplingOptions& options,
                    std::uint32_t random) {
  const auto most = std::max_element(logits.begin(), logits.end());
  const auto most_likely = static_cast<std::int32_t>(most - logits.begin());
  if (options.temperature <= 0) return most_likely;
  const double highest = static_cast<double>(*most);
  double sum = 0;
  for (float& logit : logits) {
    logit =
        static_cast<float>(std::exp((static_cast<double>(logit) - highest) / options.temperature));
    sum += static_cast<double>(logit);
  }
  if (options.top_p < 1) sum = keep_likely(logits, sum, options.top_p);
  double left = sum * (static_cast<double>(random) / 4294967296.0);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    left -= static_cast<double>(logits[i]);
    if (left < 0) return static_cast<std::int32_t>(i);
  }
  return most_likely;
}

base::Result<void> generate(Backend& backend, const step::Program& program,
                            std::vector<std::int32_t> tokens, const SamplingOptions& options,
                            const std::function<bool(std::int32_t)>& on_token) {
  const auto window = static_cast<std::size_t>(program.choices.sequence);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::size_t used = std::min(tokens.size(), window);
    const std::vector<std::int32_t> recent(tokens.end() - static_cast<std::ptrdiff_t>(used),
                                           tokens.end());
    // Attention is causal: padding after the last token does not affect it.
    ASSAY_TRY_VOID(
        run_step(backend, program, {}, [&](std::int32_t, std::span<std::int32_t> input, auto) {
          std::ranges::fill(input, 0);
          std::ranges::copy(recent, input.begin());
          return base::Result<void>{};
        }));
    ASSAY_TRY(std::vector<float> logits,
              logits_of(backend, program, static_cast<std::int64_t>(used) - 1));
    if (!std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); })) {
      return base::fail(base::failed_error("the model", "its output for this text is not finite",
                                           "its weights have diverged: use an earlier checkpoint"));
    }
    const auto random = philox(options.seed, {static_cast<std::uint64_t>(i), 0});
    const std::int32_t next = choose(logits, options, random[0]);
    if (!on_token(next)) return {};
    tokens.push_back(next);
  }
  return {};
}

}  // namespace assay::train
