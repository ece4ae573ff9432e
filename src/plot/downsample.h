// Fewer points that look the same: a drawing has some hundred columns, a run a hundred thousand
// steps.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plot/lines.h"

namespace assay::plot {

// Fewer than this cannot keep what downsample() promises.
inline constexpr std::size_t kFewestKept = 8;

// Places, ascending, of at most `most` of the values: the first and the last, and from each of many
// equal stretches its least, its largest, and the first that is not finite, where a line has a gap.
// So whatever stands out in any stretch is kept, and the extremes of all are. All of them where
// there are no more than `most`.
std::vector<std::size_t> downsample(std::span<const double> values, std::size_t most);

// At most `most` points of a line in place of very many: the mean of each of equal stretches, with
// an interval from its least to its largest value. A stretch without a finite value is a gap. The
// points as they are where there are no more than `most`.
std::vector<LinePoint> downsample_to_band(std::span<const LinePoint> points, std::size_t most);

}  // namespace assay::plot
