#include "step/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace assay::step {
namespace {

constexpr std::int64_t kPlace = 256;  // bytes: every device's allocations are at least this aligned

std::int64_t rounded(std::int64_t bytes) {
  return (bytes + kPlace - 1) / kPlace * kPlace;
}

// From the first to the last op that uses a buffer for one micro-batch.
struct Life {
  std::int32_t first = std::numeric_limits<std::int32_t>::max();
  std::int32_t last = -1;
  void see(std::int32_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};
// The lifetimes of one buffer, by micro-batch.
using Lives = std::vector<Life>;

// A buffer's lifetimes are sorted by time, both by beginning and by end.
bool lifetimes_overlap(const Lives& a, const Lives& b) {
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    if (x->first <= y->last && y->first <= x->last) return true;
    x->last < y->last ? ++x : ++y;
  }
  return false;
}

// Without a pipeline, micro-batches are alike: the first and last ones cover all cases. In a
// pipeline, which of them overlap depends on their number.
bool shows_lives(const Program& p, const Op& op) {
  if (op.phase == Phase::kOptimizer) return false;
  constexpr std::int64_t kSome = 4;
  return p.choices.layout.pipeline.ranks > 1 || op.micro < kSome ||
         op.micro >= p.choices.accumulate - kSome;
}

std::vector<Lives> lives_of(const Program& p) {
  std::vector<std::map<std::int32_t, Life>> by_micro(p.buffers.size());
  const auto see = [&](const Op& op, std::int32_t micro, std::size_t at) {
    for (const auto* views : {&op.in, &op.out}) {
      for (const View& view : *views) {
        by_micro[static_cast<std::size_t>(view.buffer)][micro].see(static_cast<std::int32_t>(at));
      }
    }
  };
  // What is gathered at the end of a step lives until the next one uses it: to the end of the list,
  // and from its beginning.
  constexpr std::int32_t kNextStep = std::numeric_limits<std::int32_t>::max();
  std::set<std::int32_t> for_next_step;
  for (const Op& op : p.prologue) {
    see(op, 0, 0);
    see(op, kNextStep, p.ops.size());
    for_next_step.insert(op.ticket);
  }
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    const Op& op = p.ops[i];
    if (!shows_lives(p, op)) continue;
    const bool early = op.is_exchange() && for_next_step.contains(op.ticket);
    see(op, early ? kNextStep : op.micro, i);
  }
  std::vector<Lives> lives(p.buffers.size());
  for (std::size_t i = 0; i < lives.size(); ++i) {
    for (const auto& [micro, life] : by_micro[i]) lives[i].push_back(life);
  }
  return lives;
}

// Largest first, each at the lowest position not taken by a buffer that is alive at the same time.
// For a step's lifetimes, which nest like brackets, this is within a few per cent of the optimum.
class Packing {
 public:
  Packing(const Program& p, std::vector<std::int64_t>& offset)
      : program_(p), offset_(offset), lives_(lives_of(p)) {}

  std::int64_t pack() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      if (program_.buffers[i].storage == Storage::kActivations) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return program_.buffers[a].bytes() > program_.buffers[b].bytes();
    });
    for (const std::size_t buffer : order) place(buffer);
    return end_;
  }

 private:
  void place(std::size_t buffer) {
    const std::int64_t size = rounded(program_.buffers[buffer].bytes());
    std::int64_t at = 0;
    for (const std::size_t other : placed_) {  // by place
      if (!lifetimes_overlap(lives_[buffer], lives_[other])) continue;
      if (at + size <= offset_[other]) break;
      at = std::max(at, offset_[other] + rounded(program_.buffers[other].bytes()));
    }
    offset_[buffer] = at;
    end_ = std::max(end_, at + size);
    const auto where = std::upper_bound(
        placed_.begin(), placed_.end(), at,
        [&](std::int64_t place, std::size_t other) { return place < offset_[other]; });
    placed_.insert(where, buffer);
  }

  const Program& program_;
  std::vector<std::int64_t>& offset_;
  std::vector<Lives> lives_;
  std::vector<std::size_t> placed_;
  std::int64_t end_ = 0;
};

}  // namespace

MemoryPlan plan_memory(const Program& p) {
  MemoryPlan plan;
  plan.offset.resize(p.buffers.size());
  const std::int64_t activations = Packing(p, plan.offset).pack();
  plan.of_storage[static_cast<int>(Storage::kActivations)] = activations;
  plan.bytes = activations;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    const Buffer& buffer = p.buffers[i];
    if (buffer.storage == Storage::kActivations) continue;
    plan.offset[i] = plan.bytes;
    plan.bytes += rounded(buffer.bytes());
    plan.of_storage[static_cast<int>(buffer.storage)] += rounded(buffer.bytes());
  }
  return plan;
}

}  // namespace assay::step
