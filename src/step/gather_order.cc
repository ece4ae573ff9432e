#include "step/gather_order.h"

#include <algorithm>

#include "base/check.h"

namespace assay::step {

GatherOrder::Known& GatherOrder::known(std::int32_t unit) {
  const auto index = static_cast<std::size_t>(unit);
  if (index >= known_.size()) known_.resize(units_.size());
  return known_[index];
}

int GatherOrder::block_place(std::int32_t unit) const {
  const auto index = static_cast<std::size_t>(unit);
  return index < known_.size() ? known_[index].place : -1;
}

void GatherOrder::plan(std::int32_t unit, std::int32_t micro) {
  if (uses_.empty() || uses_.back().unit != unit || uses_.back().micro != micro) {
    uses_.push_back({unit, micro});
  }
}

bool GatherOrder::is_there(const Use& use) const {
  const auto index = static_cast<std::size_t>(use.unit);
  if (index >= known_.size()) return false;
  const Known& at = known_[index];
  // The buffers of units outside blocks hold something else between micro-batches.
  if (!in_block(use.unit)) return at.micro == use.micro;
  return at.place >= 0 && in_block_place_[at.place] == use.unit;
}

// The one of the two block buffers that `kept` is not in; if both may be overwritten, the one whose
// weights are used again later.
int GatherOrder::place_beside(std::int32_t kept) const {
  if (kept >= 0 && in_block(kept) && is_there({kept, 0})) return 1 - block_place(kept);
  const auto next_use = [&](int place) {
    if (in_block_place_[place] < 0) return uses_.end();
    return std::ranges::find(uses_, in_block_place_[place], &Use::unit);
  };
  return next_use(1) > next_use(0) ? 1 : 0;
}

void GatherOrder::take_place(const Use& use, int place) {
  Known& at = known(use.unit);
  if (!in_block(use.unit)) {
    at.micro = use.micro;
    return;
  }
  at.place = place;
  in_block_place_[place] = use.unit;
}

void GatherOrder::gather_beside(const Use& use, std::int32_t beside, const Gather& gather) {
  take_place(use, in_block(use.unit) ? place_beside(beside) : 0);
  gather(use);
}

void GatherOrder::use(std::int32_t unit, std::int32_t micro, const Gather& gather) {
  if (in_use_.unit == unit && in_use_.micro == micro) return;
  ASSAY_CHECK(!uses_.empty() && uses_.front().unit == unit, "units must be used as planned");
  const Use now = in_use_ = uses_.front();
  uses_.pop_front();
  if (!is_there(now)) gather_beside(now, uses_.empty() ? -1 : uses_.front().unit, gather);
  // Gathers the next unit; tables that are used together are gathered together.
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const Use next = uses_[i];
    const bool block = in_block(next.unit);
    // The same unit for another micro-batch uses the same buffer, which is in use.
    if (next.unit == unit || (block && i > 0)) break;
    if (!is_there(next)) gather_beside(next, unit, gather);
    if (block) break;
  }
}

// The second block is gathered while the first is computed.
const std::vector<GatherOrder::Use>& GatherOrder::begin_with_gathered() {
  for (const Use& use : uses_) {
    first_uses_.push_back(use);
    take_place(use, 0);
    if (in_block(use.unit)) break;
  }
  return first_uses_;
}

void GatherOrder::gathered_first(std::int32_t unit) {
  if (in_block(unit)) known(unit).place = 0;
}

}  // namespace assay::step
