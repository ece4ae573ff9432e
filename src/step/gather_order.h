// GatherOrder: with ZeRO 3, decides which unit's weights are gathered when, and into which buffer.
// builder_exchange.cc issues the all-gathers, or counts them.
//
// The order in which units are used is known, and there are buffers for the units of two blocks:
// while one block is computed, the next is gathered into the other buffer. The last two blocks are
// still there when the backward pass begins, and when the next micro-batch does. Units before and
// after the blocks have separate buffers, filled once per micro-batch.
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

  // Appends a use; the same unit twice in a row, for one micro-batch, counts as one.
  void plan(std::int32_t unit, std::int32_t micro);
  // The next planned unit is used now: calls `gather` for it, if it is not there, and for the one
  // after it.
  void use(std::int32_t unit, std::int32_t micro, const Gather& gather);

  // Call when all uses have been planned: the units before the blocks, and the first block, are
  // present when the step begins.
  const std::vector<Use>& begin_with_gathered();
  [[nodiscard]] const std::vector<Use>& first_uses() const { return first_uses_; }
  // The optimizer has gathered this unit for the next step.
  void gathered_first(std::int32_t unit);

  // The buffer, 0 or 1, into which a block's unit was last gathered; -1: none yet.
  [[nodiscard]] int block_place(std::int32_t unit) const;

 private:
  struct Known {
    int place = -1;           // for a block's unit
    std::int32_t micro = -1;  // for other units: the micro-batch whose weights are there
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
  std::vector<Known> known_;                   // by unit
  std::int32_t in_block_place_[2] = {-1, -1};  // the unit in each buffer
  std::deque<Use> uses_;
  Use in_use_;
  std::vector<Use> first_uses_;
};

}  // namespace assay::step
