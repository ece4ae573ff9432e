// TotalsSink: adds up the ops that a Builder emits (totals.h).
#pragma once

#include <utility>
#include <vector>

#include "step/sink.h"
#include "step/totals.h"

namespace assay::step {

class TotalsSink final : public Sink {
 public:
  // `ordered`: also fills Totals::order.
  explicit TotalsSink(const Layout& layout, bool ordered = false)
      : layout_(layout), ordered_(ordered) {}

  [[nodiscard]] bool unrolls() const override { return false; }
  BufferId add(Buffer buffer) override {
    buffers_.push_back(std::move(buffer));
    return static_cast<BufferId>(buffers_.size() - 1);
  }
  void add(Op op, std::int64_t times) override;

  // The totals since the last call.
  Totals take() { return std::exchange(totals_, {}); }

 private:
  void note(Moment::What what, std::size_t index, std::int32_t ticket = -1) {
    if (ordered_) totals_.order.push_back({what, index, ticket});
  }

  const Layout& layout_;
  bool ordered_;
  std::vector<Buffer> buffers_;  // without names
  Totals totals_;
};

}  // namespace assay::step
