#include "plot/axis.h"

#include <algorithm>
#include <cmath>

#include "plot/number.h"

namespace assay::plot {

bool Axis::shows(double value) const {
  if (!std::isfinite(value) || std::abs(value) > kLargestShown) return false;
  return scale == Scale::kLinear || value >= kSmallestShown;
}

std::string Axis::text_of(double value) const {
  return format ? format(value) : short_number(value);
}

void Extent::add(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

AxisLine::AxisLine(const Axis& axis, Extent values, std::size_t most_ticks) : scale_(axis.scale) {
  const bool linear = scale_ == Scale::kLinear;
  if (axis.from_zero && linear) values.add(0);
  if (values.empty()) values = {.low = linear ? 0.0 : 1.0, .high = linear ? 1.0 : 10.0};
  ticks_ = ticks_over(values.low, values.high, scale_, most_ticks);
  if (!axis.format) {
    labels_ = tick_labels(ticks_);
    return;
  }
  for (const double tick : ticks_) labels_.push_back(axis.format(tick));
}

void AxisLine::lay(double low_end, double high_end) {
  low_end_ = low_end;
  high_end_ = high_end;
}

double AxisLine::evened(double value) const {
  return scale_ == Scale::kLinear ? value : std::log10(value);
}

double AxisLine::at(double value) const {
  const double low = evened(ticks_.front());
  const double share = (evened(value) - low) / (evened(ticks_.back()) - low);
  return low_end_ + share * (high_end_ - low_end_);
}

double AxisLine::between(const Extent& extent, std::size_t i, std::size_t count) const {
  const double low = evened(extent.low);
  const double share = static_cast<double>(i) / static_cast<double>(count - 1);
  const double value = low + share * (evened(extent.high) - low);
  // Powers may round past the ends.
  const double back = scale_ == Scale::kLinear ? value : std::pow(10.0, value);
  return std::clamp(back, extent.low, extent.high);
}

}  // namespace assay::plot
