#include "plan/calibrate/residuals.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "plan/calibrate/fit.h"

namespace assay::plan {
namespace {

constexpr double kFamilyExponent = -0.5;
constexpr double kPooledRows = 25;
constexpr double kLowPart = 0.1;
constexpr double kHighPart = 0.9;

std::vector<double> family_weights(std::span<const Residual> residuals) {
  std::map<std::string_view, double> counts;
  for (const Residual& residual : residuals) ++counts[family_of(residual.source)];
  std::vector<double> weights;
  for (const Residual& residual : residuals)
    weights.push_back(std::pow(counts[family_of(residual.source)], kFamilyExponent));
  return weights;
}

// The sum of some weights, and of how many.
struct Mass {
  double weight = 0;
  double rows = 0;
};

Mass mass_of(std::span<const Residual> residuals, std::span<const double> weights,
             SoftwareClass kind) {
  Mass mass;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    if (residuals[i].kind != kind) continue;
    mass.weight += weights[i];
    ++mass.rows;
  }
  return mass;
}

void widen(SeenRange& range, double value) {
  range.low = std::min(range.low, value);
  range.high = std::max(range.high, value);
}

}  // namespace

std::vector<Residual> residuals_of(std::span<const Row> rows,
                                   std::span<const RowPrediction> predictions) {
  std::vector<Residual> residuals;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!has_time(rows[i]) || !predictions[i].step_s) continue;
    const double log_ratio = std::log(*rows[i].step_s / *predictions[i].step_s);
    if (!std::isfinite(log_ratio)) continue;
    residuals.push_back(
        {.kind = class_of(rows[i]), .source = rows[i].source, .log_ratio = log_ratio});
  }
  return residuals;
}

std::string_view family_of(std::string_view source) {
  const std::size_t first = source.find(' ');
  if (first == std::string_view::npos) return source;
  return source.substr(0, source.find(' ', first + 1));
}

double weighted_quantile(std::span<const WeightedValue> ordered, double part) {
  double sum = 0;
  for (const WeightedValue& one : ordered) sum += one.weight;
  const double wanted = part * sum;
  double below = 0;  // weight, up to the middle of `before`
  const WeightedValue* before = nullptr;
  for (const WeightedValue& one : ordered) {
    if (one.weight <= 0) continue;
    const double middle = below + (before != nullptr ? before->weight / 2 : 0) + one.weight / 2;
    if (wanted <= middle) {
      if (before == nullptr) return one.value;
      const double way = (wanted - below) / (middle - below);
      return before->value + way * (one.value - before->value);
    }
    below = middle;
    before = &one;
  }
  return before->value;
}

IntervalTable interval_table(std::span<const Residual> residuals) {
  if (residuals.empty()) return {};
  std::vector<Residual> ordered(residuals.begin(), residuals.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Residual& a, const Residual& b) { return a.log_ratio < b.log_ratio; });
  const std::vector<double> weights = family_weights(ordered);
  double all = 0;
  for (const double weight : weights) all += weight;

  IntervalTable table;
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    const auto kind = static_cast<SoftwareClass>(c);
    const Mass own = mass_of(ordered, weights, kind);
    const double pooled = kPooledRows / (own.rows + kPooledRows);
    std::vector<WeightedValue> mixed;
    for (std::size_t i = 0; i < ordered.size(); ++i) {
      const double share = ordered[i].kind == kind ? weights[i] / own.weight * (1 - pooled) : 0;
      mixed.push_back({ordered[i].log_ratio, share + weights[i] / all * pooled});
    }
    table.by_class[c] = {.low = std::exp(weighted_quantile(mixed, kLowPart)),
                         .high = std::exp(weighted_quantile(mixed, kHighPart)),
                         .rows = std::llround(own.rows)};
  }
  return table;
}

RangeTable ranges_of(std::span<const Row> rows) {
  RangeTable table;
  for (const Row& row : rows) {
    if (!has_time(row)) continue;
    const Work& work = row.candidates.front();  // they differ in their micro-batch only
    SeenRanges& seen = table[static_cast<std::size_t>(class_of(row))];
    widen(seen.parameters, work.shape.parameters);
    widen(seen.ranks, work.degrees.ranks);
    widen(seen.sequence, work.batch.sequence);
    widen(seen.card_flops, work.card.bf16_flops.count());
  }
  return table;
}

}  // namespace assay::plan
