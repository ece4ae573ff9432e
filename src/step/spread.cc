#include "step/spread.h"

#include <algorithm>

#include "step/parameters.h"

namespace assay::step {
namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t room_of(const Parameter& p) {
  return rounded_up(p.elements(), kTensorAlignment);
}

// Muon's matrices in their order, as many to a range as it has room for. How many ranges that is.
std::int64_t place_whole(std::vector<Parameter>& parameters, std::int64_t range) {
  std::int64_t end = 0;
  for (Parameter& p : parameters) {
    if (p.group != Group::kMuon) continue;
    const std::int64_t size = room_of(p);
    if (end % range + size > range) end = rounded_up(end, range);
    p.offset = end;
    end += size;
  }
  return rounded_up(end, range) / range;
}

// The smallest range with which `ranks` of them are enough.
std::int64_t smallest_range(std::int64_t ranks, std::vector<Parameter>& parameters,
                            std::int64_t total) {
  std::int64_t least = kTensorAlignment;
  for (const Parameter& p : parameters) {
    if (p.group == Group::kMuon) least = std::max(least, room_of(p));
  }
  std::int64_t most = total;
  while (least < most) {
    const std::int64_t middle = (least + most) / 2 / kTensorAlignment * kTensorAlignment;
    if (place_whole(parameters, middle) <= ranks) {
      most = middle;
    } else {
      least = middle + kTensorAlignment;
    }
  }
  return most;
}

}  // namespace

void spread_over_ranks(std::int64_t ranks, std::vector<Parameter>& parameters,
                       std::int64_t (&groups)[kGroups]) {
  for (std::int64_t& elements : groups) {
    elements = rounded_up(elements, ranks * kTensorAlignment);
  }
  std::int64_t& matrices = groups[static_cast<int>(Group::kMuon)];
  if (ranks == 1 || matrices == 0) return;
  const std::int64_t range = smallest_range(ranks, parameters, matrices);
  place_whole(parameters, range);
  matrices = ranks * range;
}

}  // namespace assay::step
