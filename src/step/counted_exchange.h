// CountedExchange: an exchange of a step with how often it is made, as footprints and totals have
// it.
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

// The same exchange, so many times per step.
struct CountedExchange {
  Kind kind = Kind::kAllGather;  // or kAllToAll, kExchangeRows, kSend, kReceive
  Axis axis = Axis::kNone;
  std::int64_t ranks = 1;  // along the axis
  Phase phase = Phase::kForward;
  Exchanged what = Exchanged::kWeights;
  std::string units;  // whose: "embedding", "layers", "layers.mlp", "head"; empty: of none
  Dtype type = Dtype::kF32;
  std::int64_t elements = 0;  // of the whole: what is gathered, exchanged, sent or received
  std::int64_t calls = 0;

  [[nodiscard]] std::int64_t bytes() const { return elements * bytes_of(type); }  // of one call
  [[nodiscard]] bool same_but_calls(const CountedExchange& other) const;
};

// Of an op that is an exchange; `buffers` are those that its views are of.
CountedExchange counted_exchange(const Op& op, const std::vector<Buffer>& buffers,
                                 const Layout& layout, std::int64_t calls);
// One more line, or more calls of one that is there; which.
std::size_t add_calls(CountedExchange one, std::vector<CountedExchange>& list);

}  // namespace assay::step
