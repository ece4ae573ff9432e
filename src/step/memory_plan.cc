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

// From the first to the last op that has to do with a buffer for one micro-batch.
struct Life {
  std::int32_t first = std::numeric_limits<std::int32_t>::max();
  std::int32_t last = -1;
  void see(std::int32_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};
// Of one buffer, by micro-batch.
using Lives = std::vector<Life>;

bool meet(const Lives& a, const Lives& b) {
  const std::size_t both = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < both; ++i) {
    // What a micro-batch leaves for the next one may outlive that one's beginning.
    for (std::size_t j = i > 0 ? i - 1 : 0; j < std::min(both, i + 2); ++j) {
      if (a[i].first <= b[j].last && b[j].first <= a[i].last) return true;
    }
  }
  return false;
}

// Micro-batches are alike but for the first, which finds nothing, and the last, which leaves
// nothing: so a few show all lives that there are.
std::vector<Lives> lives_of(const Program& p) {
  constexpr std::int32_t kMicros = 3;
  std::vector<Lives> lives(p.buffers.size());
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    const Op& op = p.ops[i];
    if (op.micro >= kMicros || op.phase == Phase::kOptimizer) continue;
    for (const auto* views : {&op.in, &op.out}) {
      for (const View& view : *views) {
        Lives& of = lives[static_cast<std::size_t>(view.buffer)];
        of.resize(std::max(of.size(), static_cast<std::size_t>(op.micro) + 1));
        of[static_cast<std::size_t>(op.micro)].see(static_cast<std::int32_t>(i));
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
      if (!meet(lives_[buffer], lives_[other])) continue;
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
