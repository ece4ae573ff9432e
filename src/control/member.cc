#include "control/member.h"

#include <fmt/format.h>

#include <cstddef>

namespace assay::control {

std::string rank_list(const std::vector<int>& ranks) {
  constexpr int kMostRanges = 8;
  std::string text;
  int ranges = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    if (ranges == kMostRanges) return text + fmt::format(" and {} more", ranks.size() - i);
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += last == i ? fmt::format("{}", ranks[i])
                      : fmt::format("{}{}{}", ranks[i], last == i + 1 ? ", " : "-", ranks[last]);
    i = last + 1;
    ++ranges;
  }
  return text;
}

}  // namespace assay::control
