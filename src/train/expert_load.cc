#include "train/expert_load.h"

#include <algorithm>
#include <cmath>

namespace assay::train {

ExpertLoad expert_load(std::span<const float> loads, std::int64_t experts) {
  const auto count = static_cast<std::size_t>(experts);
  const std::size_t mixtures = loads.size() / count;
  ExpertLoad found;
  found.share.assign(count, 0.0);
  double all = 0;
  for (std::size_t mixture = 0; mixture < mixtures; ++mixture) {
    const std::span<const float> row = loads.subspan(mixture * count, count);
    double sum = 0;
    for (const float load : row) sum += static_cast<double>(load);
    if (sum <= 0) continue;
    all += sum;
    double entropy = 0;
    for (std::size_t e = 0; e < count; ++e) {
      const double part = static_cast<double>(row[e]) / sum;
      found.share[e] += static_cast<double>(row[e]);
      found.largest = std::max(found.largest, part * static_cast<double>(experts));
      if (part > 0) entropy -= part * std::log(part);
    }
    const double most = experts > 1 ? std::log(static_cast<double>(experts)) : 1;
    found.entropy += (experts > 1 ? entropy / most : 1) / static_cast<double>(mixtures);
  }
  if (all > 0) {
    for (double& share : found.share) share /= all;
  }
  return found;
}

}  // namespace assay::train
