// What the tracker reports at the end of a run: the interface of the receiver, and the list of what
// could not be observed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lineage/filter/filter.h"
#include "store/run.h"

namespace assay::lineage {

// Receives a run's results at its end: inputs, outputs (mixed with inputs that the run downloaded)
// and left-out files, one kind after the other and each sorted by path; then processes; then what
// was missed. `rule` is why a file was kept or left out.
class Results {
 public:
  virtual ~Results() = default;
  virtual void input(store::Input input, const FilterRule& rule) = 0;
  virtual void output(store::Output output, const FilterRule& rule) = 0;
  // A file that is neither input nor output, but that a user might look for. If it was read, this
  // is its path at that time.
  struct LeftOut {
    std::string path;
    bool read = false;
    bool changed = false;  // written, created, renamed or removed
  };
  virtual void left_out(LeftOut file, const FilterRule& rule) = 0;
  // What is known about paths besides contents: links, listed folders, paths without a file.
  virtual void fact(store::PathFact fact) = 0;
  virtual void process(store::ProcessRecord process) = 0;
  virtual void missed(store::Missed missed) = 0;
};

// What could not be observed, without duplicates and at most kMost entries, for people to read.
class MissedList {
 public:
  static constexpr std::size_t kMost = 100;

  void add(std::string what, std::string text) {
    if (known_.contains({what, text})) return;
    if (list_.size() == kMost) {
      ++more_;
      return;
    }
    known_.emplace(what, text);
    list_.push_back({std::move(what), std::move(text)});
  }
  // In the order of add(); beyond kMost entries, a last one has the number of the others.
  [[nodiscard]] std::vector<store::Missed> list() const {
    auto all = list_;
    if (more_ > 0) all.push_back({"more", std::to_string(more_) + " more are not listed"});
    return all;
  }

 private:
  std::vector<store::Missed> list_;
  std::set<std::pair<std::string, std::string>> known_;
  std::uint64_t more_ = 0;
};

}  // namespace assay::lineage
