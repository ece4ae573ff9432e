#include "plot/distribution_values.h"

#include <cmath>
#include <numeric>

namespace assay::plot {
namespace {

constexpr std::size_t kMostDots = 2000;
constexpr std::size_t kFewestBins = 8;
constexpr std::size_t kMostBins = 60;

}  // namespace

double quantile(const std::vector<double>& ascending, double share) {
  const double rank = std::ceil(share * static_cast<double>(ascending.size()));
  return ascending[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

CleanValues clean_values(const Distribution& chart, LeftOut& left_out) {
  CleanValues clean;
  for (std::size_t i = 0; i < chart.values.size(); ++i) {
    if (!chart.value.shows(chart.values[i])) {
      ++left_out.values;
      continue;
    }
    clean.places.push_back(i);
    clean.values.push_back(chart.values[i]);
  }
  clean.ascending = clean.values;
  std::sort(clean.ascending.begin(), clean.ascending.end());
  if (clean.ascending.empty() || chart.value.scale != Scale::kLinear) return clean;
  // Far is what lies five times as far from the middle as all but a few do: one in a hundred, and
  // of few values up to three, for the first steps of any run are slow.
  constexpr double kFar = 5;
  const std::size_t all = clean.ascending.size();
  const std::size_t few = std::max(all / 100, std::min<std::size_t>(3, all / 8));
  const double middle = quantile(clean.ascending, 0.5);
  const double usual = clean.ascending[all - 1 - few];
  // Where all but those are equal upwards, how far they reach downwards.
  const double spread = usual > middle ? usual - middle : middle - clean.ascending[few];
  if (spread > 0 && clean.ascending.back() - middle > kFar * spread) {
    clean.axis_end = middle + 2 * spread;
  }
  return clean;
}

// Freedman and Diaconis' width, which a few far values do not blow up.
std::size_t bins_for(const CleanValues& clean, const AxisLine& line) {
  if (clean.ascending.size() < 2) return kFewestBins;
  const double middle_half =
      std::abs(line.at(quantile(clean.ascending, 0.75)) - line.at(quantile(clean.ascending, 0.25)));
  const double width = 2 * middle_half / std::cbrt(static_cast<double>(clean.ascending.size()));
  const double all = std::abs(line.high_end() - line.low_end());
  if (!(width > all / static_cast<double>(kMostBins))) return kMostBins;
  return std::max(kFewestBins, static_cast<std::size_t>(all / width));
}

std::vector<std::size_t> counts_of(const CleanValues& clean, const AxisLine& line,
                                   std::size_t bins) {
  std::vector<std::size_t> counts(bins);
  const double all = line.high_end() - line.low_end();
  for (const double value : clean.values) {
    if (value > clean.axis_end) continue;
    const double share = (line.at(value) - line.low_end()) / all;
    const auto bin = static_cast<std::size_t>(std::max(0.0, share * static_cast<double>(bins)));
    ++counts[std::min(bin, bins - 1)];
  }
  return counts;
}

std::vector<std::size_t> dotted(const CleanValues& clean) {
  std::vector<std::size_t> all(clean.values.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (all.size() <= kMostDots) return all;
  const double low = clean.ascending[kOutermost - 1];
  const double high = clean.ascending[clean.ascending.size() - kOutermost];
  const std::size_t every = all.size() / (kMostDots - 2 * kOutermost) + 1;
  std::size_t inner = 0;
  std::size_t outer = 0;
  std::vector<std::size_t> kept;
  for (const std::size_t i : all) {
    const bool outermost = clean.values[i] <= low || clean.values[i] >= high;
    // Where very many are equal to an outermost one, they are one in so many as well.
    const bool extreme =
        clean.values[i] == clean.ascending.front() || clean.values[i] == clean.ascending.back();
    if (outermost && (outer < 2 * kOutermost || (extreme && outer < 4 * kOutermost))) {
      ++outer;
      kept.push_back(i);
    } else if (inner++ % every == 0) {
      kept.push_back(i);
    }
  }
  return kept;
}

}  // namespace assay::plot
