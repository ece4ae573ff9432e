#include "step/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace assay::step {
namespace {

constexpr std::int64_t kPlace = 256;  // bytes; what every device allocates at least as aligned

std::int64_t rounded(std::int64_t bytes) {
  return (bytes + kPlace - 1) / kPlace * kPlace;
}

struct Life {
  std::int32_t first = std::numeric_limits<std::int32_t>::max();
  std::int32_t last = -1;
  void see(std::int32_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
  [[nodiscard]] bool meets(const Life& other) const {
    return first <= other.last && other.first <= last;
  }
};

// Every micro-batch uses the same places, and nothing but gradients and scalars is carried over, so
// the first one's lives are all there are.
std::vector<Life> lives_of(const Program& p) {
  std::vector<Life> lives(p.buffers.size());
  for (std::size_t i = 0; i < p.ops.size() && p.ops[i].micro == 0; ++i) {
    if (p.ops[i].phase == Phase::kOptimizer) break;
    for (const auto* views : {&p.ops[i].in, &p.ops[i].out}) {
      for (const View& view : *views) {
        lives[static_cast<std::size_t>(view.buffer)].see(static_cast<std::int32_t>(i));
      }
    }
  }
  return lives;
}

// Largest first, each at the lowest place that no buffer alive at the same time has taken. Within a
// few per cent of the best there is for a step's lives, which nest like brackets.
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
      if (!lives_[buffer].meets(lives_[other])) continue;
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
  std::vector<Life> lives_;
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
