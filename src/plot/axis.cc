#include "plot/axis.h"

#include <algorithm>
#include <cmath>

#include "plot/ticks.h"

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
  if (axis.whole && linear && ticks_[1] - ticks_[0] < 1) ticks_ = whole_ticks(values);
  shown_ = {.low = ticks_.front(), .high = ticks_.back()};
  trim(values);
  if (!axis.tick_format) {
    labels_ = tick_labels(ticks_);
    return;
  }
  for (const double tick : ticks_) labels_.push_back(axis.tick_format(tick));
}

// One tick per whole number, at least kFewestTicks.
std::vector<double> AxisLine::whole_ticks(const Extent& values) {
  const double low = std::floor(values.low);
  const double high = std::max(std::ceil(values.high), low + static_cast<double>(kFewestTicks) - 1);
  std::vector<double> ticks;
  const auto last = static_cast<int>(high - low);
  for (int i = 0; i <= last; ++i) ticks.push_back(low + i);
  return ticks;
}

void AxisLine::trim(const Extent& values) {
  constexpr double kFar = 0.3;      // of the way between two ticks
  constexpr double kBeyond = 0.02;  // of the whole axis, for marks at its end
  const double low = scaled(values.low);
  const double high = scaled(values.high);
  const double beyond = kBeyond * (high - low);
  if (ticks_.size() <= kFewestTicks) return;
  const double last_gap = scaled(ticks_.back()) - scaled(ticks_[ticks_.size() - 2]);
  if (scaled(ticks_.back()) - high > kFar * last_gap) {
    ticks_.pop_back();
    shown_.high = std::max(unscaled(high + beyond), ticks_.back());
  }
  if (ticks_.size() <= kFewestTicks) return;
  const double first_gap = scaled(ticks_[1]) - scaled(ticks_[0]);
  if (low - scaled(ticks_.front()) > kFar * first_gap) {
    ticks_.erase(ticks_.begin());
    shown_.low = std::min(unscaled(low - beyond), ticks_.front());
  }
}

void AxisLine::lay(double low_end, double high_end) {
  low_end_ = low_end;
  high_end_ = high_end;
}

double AxisLine::scaled(double value) const {
  return scale_ == Scale::kLinear ? value : std::log10(value);
}

double AxisLine::unscaled(double value) const {
  return scale_ == Scale::kLinear ? value : std::pow(10.0, value);
}

double AxisLine::at(double value) const {
  const double low = scaled(shown_.low);
  const double share = (scaled(value) - low) / (scaled(shown_.high) - low);
  return low_end_ + share * (high_end_ - low_end_);
}

double AxisLine::between(const Extent& extent, std::size_t i, std::size_t count) const {
  const double low = scaled(extent.low);
  const double share = static_cast<double>(i) / static_cast<double>(count - 1);
  const double value = low + share * (scaled(extent.high) - low);
  // Rounding may lead past the ends.
  return std::clamp(unscaled(value), extent.low, extent.high);
}

}  // namespace assay::plot
