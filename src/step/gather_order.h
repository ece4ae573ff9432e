// GatherOrder: where ranks keep a part of the weights each (ZeRO 3), which unit is gathered when,
// and into which place. Decides; exchange.cc issues the exchanges, or counts them.
//
// Units are used in a known order, and two blocks' units have a place at a time: while one is
// computed with, the next is gathered into the other. The two used last are still there when the
// backward pass begins, and when the next micro-batch does. What comes before and after the blocks
// has a place of its own, for one micro-batch.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "step/units.h"

namespace assay::step {

class GatherOrder {
 public:
  struct Use {
    std::int32_t unit = -1;
    std::int32_t micro = 0;
  };
  using Gather = std::function<void(const Use&)>;

  // `units` must outlive this.
  explicit GatherOrder(const std::vector<Unit>& units) : units_(units) {}

  // In this order; the same unit twice in a row, for one micro-batch, is one use.
  void plan(std::int32_t unit, std::int32_t micro);
  // The next one as planned is used now: `gather` gets it, if it is not there, and what is needed
  // after it.
  void use(std::int32_t unit, std::int32_t micro, const Gather& gather);

  // All uses have been planned: what comes before the blocks, and the first block, is there when
  // the step begins.
  const std::vector<Use>& begin_with_gathered();
  [[nodiscard]] const std::vector<Use>& first_uses() const { return first_uses_; }
  // For the next step.
  void gathered_first(std::int32_t unit);

  // Of a block's unit, 0 or 1: where it was gathered to last; -1: it never was.
  [[nodiscard]] int block_place(std::int32_t unit) const;

 private:
  struct Known {
    int place = -1;           // of a block's unit
    std::int32_t micro = -1;  // of another's: whose weights are there
  };

  [[nodiscard]] bool in_block(std::int32_t unit) const {
    return units_[static_cast<std::size_t>(unit)].layer != kNoLayer;
  }
  Known& known(std::int32_t unit);
  [[nodiscard]] bool is_there(const Use& use) const;
  [[nodiscard]] int place_beside(std::int32_t kept) const;
  void take_place(const Use& use, int place);
  void gather_beside(const Use& use, std::int32_t beside, const Gather& gather);

  const std::vector<Unit>& units_;
  std::vector<Known> known_;                   // by unit, as far as any was gathered
  std::int32_t in_block_place_[2] = {-1, -1};  // the units there
  std::deque<Use> uses_;
  Use in_use_;
  std::vector<Use> first_uses_;
};

}  // namespace assay::step
