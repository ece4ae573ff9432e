#include "plot/histogram.h"

#include <cmath>
#include <numeric>

#include "base/statistics.h"

namespace assay::plot {
namespace {

constexpr std::size_t kMostDots = 2000;
constexpr std::size_t kFewestBins = 8;
constexpr std::size_t kMostBins = 60;

}  // namespace

HistogramValues histogram_values(const Distribution& chart, Omitted& omitted) {
  HistogramValues data;
  for (std::size_t i = 0; i < chart.values.size(); ++i) {
    if (!chart.value.shows(chart.values[i])) {
      ++omitted.values;
      continue;
    }
    data.places.push_back(i);
    data.values.push_back(chart.values[i]);
  }
  data.ascending = data.values;
  std::sort(data.ascending.begin(), data.ascending.end());
  if (data.ascending.empty() || chart.value.scale != Scale::kLinear) return data;
  // An outlier is five times as far from the median as all but a few values: one in a hundred, and
  // of few values up to three, because the first steps of any run are slow.
  constexpr double kFar = 5;
  const std::size_t all = data.ascending.size();
  const std::size_t few = std::max(all / 100, std::min<std::size_t>(3, all / 8));
  const double middle = base::quantile_of_sorted(data.ascending, 0.5);
  const double usual = data.ascending[all - 1 - few];
  // If the usual values do not reach above the median, how far they reach below it.
  const double spread = usual > middle ? usual - middle : middle - data.ascending[few];
  if (spread > 0 && data.ascending.back() - middle > kFar * spread) {
    data.axis_end = middle + 2 * spread;
  }
  return data;
}

// Freedman and Diaconis' width, which outliers do not affect.
std::size_t bins_for(const HistogramValues& data, const AxisLine& line) {
  if (data.ascending.size() < 2) return kFewestBins;
  const double middle_half = std::abs(line.at(base::quantile_of_sorted(data.ascending, 0.75)) -
                                      line.at(base::quantile_of_sorted(data.ascending, 0.25)));
  const double width = 2 * middle_half / std::cbrt(static_cast<double>(data.ascending.size()));
  const double all = std::abs(line.high_end() - line.low_end());
  if (!(width > all / static_cast<double>(kMostBins))) return kMostBins;
  return std::max(kFewestBins, static_cast<std::size_t>(all / width));
}

std::vector<std::size_t> counts_of(const HistogramValues& data, const AxisLine& line,
                                   std::size_t bins) {
  std::vector<std::size_t> counts(bins);
  const double all = line.high_end() - line.low_end();
  for (const double value : data.values) {
    if (value > data.axis_end) continue;
    const double share = (line.at(value) - line.low_end()) / all;
    const auto bin = static_cast<std::size_t>(std::max(0.0, share * static_cast<double>(bins)));
    ++counts[std::min(bin, bins - 1)];
  }
  return counts;
}

std::vector<std::size_t> dotted(const HistogramValues& data) {
  std::vector<std::size_t> all(data.values.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (all.size() <= kMostDots) return all;
  const double low = data.ascending[kOutermost - 1];
  const double high = data.ascending[data.ascending.size() - kOutermost];
  const std::size_t every = all.size() / (kMostDots - 2 * kOutermost) + 1;
  std::size_t inner = 0;
  std::size_t outer = 0;
  std::vector<std::size_t> kept;
  for (const std::size_t i : all) {
    const bool outermost = data.values[i] <= low || data.values[i] >= high;
    // If very many values equal an extreme, only one in n of them is drawn as well.
    const bool extreme =
        data.values[i] == data.ascending.front() || data.values[i] == data.ascending.back();
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
