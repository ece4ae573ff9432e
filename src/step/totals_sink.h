// What totals are made of: the sink that adds a Builder's ops up, and the emission of one block of
// each kind and of what is before and after the blocks.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "step/builder.h"
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
  void note(ScheduleEvent::What what, std::size_t index, std::int32_t ticket = -1) {
    if (ordered_) totals_.order.push_back({what, index, ticket});
  }

  const Layout& layout_;
  bool ordered_;
  std::vector<Buffer> buffers_;  // without names
  Totals totals_;
};

// Equal blocks: some layers of a stage in some micro-batches.
struct BlockKind {
  std::int32_t layer = 0;  // a representative
  std::int32_t micro = 0;  // likewise
  Builder::RepeatCounts repeats;
  bool defers = false;  // gradients of weights are made after the rest
};

// A block of one kind, forward and back.
void emit_block(Builder& b, const BlockKind& kind);
// Reading and embedding tokens, and the backward pass of that.
void emit_first(Builder& b, const View& tokens);
// Final norm, logits and loss, and their backward pass.
void emit_last(Builder& b, const View& targets);

// Sets up the documents that attention reads.
void set_documents(Builder& b);

}  // namespace assay::step
