// CountedExchange: an exchange of a step with the number of times it is made; used by footprints
// and totals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "step/op.h"

namespace assay::step {

enum class Exchanged : std::uint8_t {
  kWeights,
  kGradients,
  kActivations,  // and their gradients
  kScalars,      // losses, and sums of squares for the norm
};
std::string_view to_text(Exchanged what);

// The same exchange, `calls` times per step.
struct CountedExchange {
  OpKind kind = OpKind::kAllGather;  // or kAllToAll, kExchangeRows, kSend, kReceive
  Axis axis = Axis::kNone;
  std::int64_t ranks = 1;  // along the axis
  Phase phase = Phase::kForward;
  Exchanged what = Exchanged::kWeights;
  std::string units;  // "embedding", "layers", "layers.mlp", "head"; empty: no unit
  Dtype type = Dtype::kF32;
  std::int64_t elements = 0;  // in total: all that is gathered, exchanged, sent or received
  std::int64_t calls = 0;

  [[nodiscard]] std::int64_t bytes() const { return elements * bytes_of(type); }  // of one call
  [[nodiscard]] bool same_but_calls(const CountedExchange& other) const;
};

// For an op that is an exchange; `buffers` are those of its views.
CountedExchange counted_exchange(const Op& op, const std::vector<Buffer>& buffers,
                                 const Layout& layout, std::int64_t calls);
// Adds an entry to the list, or its calls to an equal entry; returns the index.
std::size_t add_calls(CountedExchange one, std::vector<CountedExchange>& list);

}  // namespace assay::step
