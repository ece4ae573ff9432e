// MissedList: what could not be seen, each thing once, and no more than people read.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

class MissedList {
 public:
  static constexpr std::size_t kMost = 100;

  void add(std::string what, std::string text);
  // In the order of add(); where there were more than kMost, a last one says how many.
  [[nodiscard]] std::vector<store::Missed> list() const;

 private:
  std::vector<store::Missed> list_;
  std::set<std::pair<std::string, std::string>> known_;
  std::uint64_t more_ = 0;
};

}  // namespace assay::lineage
