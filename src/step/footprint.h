// Footprint: what a rank's step communicates and stores, counted from its program (program.h). The
// planner shows it, and tests compare it with the trainer's executed log and the planner's closed
// form.
//
// Without a pipeline all micro-batches of a step are alike, so only a few are unrolled and the
// others are counted: this is exact (footprint_test.cc), and its cost does not grow with their
// number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "step/counted_exchange.h"
#include "step/memory_plan.h"
#include "step/program.h"

namespace assay::step {

// Units that differ only in their layer.
struct UnitKind {
  std::string name;  // "layers.mlp" for layers.0.mlp, layers.1.mlp, …
  std::vector<std::string_view> parts;
  bool whole_matrices = false;  // of Muon
  std::int64_t count = 0;
  std::int64_t elements_each = 0;  // of the largest, including padding
  std::int64_t elements = 0;       // of all together
};

struct Footprint {
  Choices choices;
  std::vector<UnitKind> units;
  std::vector<CountedExchange> exchanges;  // in the order of their first issue
  MemoryPlan memory;                       // without the positions of buffers
  double flops = 0;
  double folded_bytes = 0;  // read and written when gradients are summed

  [[nodiscard]] std::int64_t exchanged_bytes() const;  // in all messages
};

// Micro-batches that are unrolled without a pipeline: the first and last few, which are all that
// memory planning looks at (memory_plan.cc), plus one or two in between that represent the rest.
inline constexpr std::int64_t kUnrolledMicros = 9;

// Fails in the same cases as build().
base::Result<Footprint> footprint_of(const spec::ModelSpec& model, const Choices& choices);

// For an existing program and its memory plan.
Footprint footprint_of(const Program& program, const MemoryPlan& memory);

}  // namespace assay::step
