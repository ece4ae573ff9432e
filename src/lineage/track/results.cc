#include "lineage/track/results.h"

#include <fmt/format.h>

namespace assay::lineage {

void MissedList::add(std::string what, std::string text) {
  if (known_.contains({what, text})) return;
  if (list_.size() == kMost) {
    ++more_;
    return;
  }
  known_.emplace(what, text);
  list_.push_back({std::move(what), std::move(text)});
}

std::vector<store::Missed> MissedList::list() const {
  auto all = list_;
  if (more_ > 0) all.push_back({"more", fmt::format("{} more are not listed", more_)});
  return all;
}

}  // namespace assay::lineage
