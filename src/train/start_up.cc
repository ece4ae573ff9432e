#include "train/start_up.h"

#include <algorithm>
#include <utility>

namespace assay::train {

StartUp::StartUp(double before_s, Show show, const base::Clock& clock)
    : clock_(clock), before_s_(before_s), show_(std::move(show)), start_ns_(clock.monotonic_ns()) {
  if (before_s > 0) parts_.push_back({"process", before_s});
}

double StartUp::now() const {
  return before_s_ + static_cast<double>(clock_.monotonic_ns() - start_ns_) / 1e9;
}

void StartUp::close() {
  if (current_) parts_[*current_].seconds += now() - current_since_;
  current_.reset();
}

void StartUp::begin(const std::string& name, std::string_view description) {
  if (ended_) return;
  close();
  current_since_ = now();
  const auto known = std::ranges::find(parts_, name, &Part::name);
  current_ = static_cast<std::size_t>(known - parts_.begin());
  if (known == parts_.end()) parts_.push_back({name, 0});
  if (show_) show_(description, current_since_);
}

void StartUp::end() {
  if (ended_) return;
  close();
  ended_ = now();
}

double StartUp::seconds() const {
  return ended_.value_or(now());
}

}  // namespace assay::train
