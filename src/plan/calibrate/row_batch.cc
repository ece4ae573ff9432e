#include "plan/calibrate/row_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plan/calibrate/row_text.h"

namespace assay::plan {
namespace {

// Where the micro-batch is not stated, these are tried, up to kMostMicroTokens tokens.
constexpr double kMicroBatches[] = {1, 2, 4, 8, 16};
constexpr double kMostMicroTokens = 16384;

// The assumed step of a row that states only its rate: its tokens, and in a pipeline as many
// micro-batches per stage as the median of the rows that state both, for dense models and mixtures.
constexpr double kTypicalTokens = 4e6;
constexpr double kTypicalMicrosPerStage = 8;
constexpr double kTypicalMicrosOfMixtures = 16;

double at_least_one(double count) {
  return std::max(1.0, std::nearbyint(count));
}

// Tokens per second hardly depend on how many micro-batches a step has, once they are some.
RowBatches typical_batch(const RowFields& row, const Shape& shape, const Degrees& degrees) {
  Batch batch{*row.seq, row.micro_batch.value_or(1)};
  const double tokens = batch.sequence * batch.micro_batch * degrees.dp * degrees.fsdp;
  const double per_stage = shape.is_moe() ? kTypicalMicrosOfMixtures : kTypicalMicrosPerStage;
  const double fill = degrees.pp > 1 ? per_stage * degrees.pp : 1;
  batch.micros = row.grad_accum.value_or(std::max(fill, at_least_one(kTypicalTokens / tokens)));
  return {.candidates = {batch},
          .assumed = fmt::format("batch unknown: {} micro-batches assumed, compared by tokens/s",
                                 batch.micros),
          .by_rate = true};
}

}  // namespace

std::optional<double> row_sequences(const RowFields& row) {
  auto all = number_after(row.lower_notes, "global batch ", false);
  if (!all) all = number_after(row.lower_notes, "gbs ", false);
  if (all && *all >= 1) return all;
  if (!row.tok_per_s || !row.step_s) return std::nullopt;
  const double sequences = *row.tok_per_s * *row.step_s / *row.seq;
  if (sequences < 0.5) return std::nullopt;
  return std::nearbyint(sequences);
}

RowBatches row_batches(const RowFields& row, const Shape& shape, Framework framework,
                       const Degrees& degrees, const std::optional<double>& sequences) {
  const double sequence = *row.seq;
  const double per_rank = sequences.value_or(1) / (degrees.dp * degrees.fsdp);
  if (!sequences && row.tok_per_s && !(row.micro_batch && row.grad_accum))
    return typical_batch(row, shape, degrees);
  RowBatches result;
  if (row.micro_batch) {
    Batch batch{sequence, *row.micro_batch, row.grad_accum.value_or(1)};
    if (!row.grad_accum) {
      if (sequences) batch.micros = at_least_one(per_rank / batch.micro_batch);
      result.unknown = !sequences;
      result.assumed = result.unknown ? "batch unknown: grad_accum 1 assumed, not scored"
                                      : fmt::format("grad_accum {} assumed", batch.micros);
    }
    // Automodel's rows give a pipeline's local batch, and their notes what it is cut into.
    const auto cut = number_after(row.lower_notes, "mbs ", true);
    if (framework == Framework::kAutomodel && degrees.pp > 1 && cut && *cut < batch.micro_batch) {
      batch.micros *= batch.micro_batch / *cut;
      batch.micro_batch = *cut;
    }
    result.candidates = {batch};
    return result;
  }
  if (row.grad_accum && sequences) {
    const double micro = at_least_one(per_rank / *row.grad_accum);
    result.candidates = {{sequence, micro, *row.grad_accum}};
    result.assumed = fmt::format("micro_batch {} assumed", micro);
    return result;
  }
  if (!sequences) {
    result.candidates = {{sequence, 1, row.grad_accum.value_or(1)}};
    result.assumed = "batch unknown: micro-batches of one sequence assumed, not scored";
    result.unknown = true;
    return result;
  }
  result.micro_unknown = true;
  // In pipelines, where more micro-batches shorten the bubble, it is one sequence as a rule.
  if (degrees.pp > 1 && per_rank >= 1) {
    result.candidates = {{sequence, 1, at_least_one(per_rank)}};
    result.assumed = "micro_batch: not stated, 1 assumed";
    return result;
  }
  for (const double micro : kMicroBatches) {
    const double micros = per_rank / micro;
    if (micros >= 1 && micros == std::floor(micros) && micro * sequence <= kMostMicroTokens)
      result.candidates.push_back({sequence, micro, micros});
  }
  if (result.candidates.empty())
    result.candidates.push_back({sequence, 1, std::max(1.0, per_rank)});
  result.assumed = "micro_batch: not stated, the fastest assumed";
  return result;
}

}  // namespace assay::plan
