// Footprint: what a rank's step exchanges and holds, counted from its program (program.h). The
// planner shows it, and tests hold the trainer's executed log and the planner's closed form to it.
//
// Micro-batches of a step without a pipeline are alike, so that of many only a few are unrolled and
// the others counted: exact (footprint_test.cc), and a plan of any length takes as long as one.
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

// Units that differ by their layer alone.
struct UnitKind {
  std::string name;  // "layers.mlp" for layers.0.mlp, layers.1.mlp, …
  std::vector<std::string_view> parts;
  bool whole_matrices = false;  // Muon's
  std::int64_t count = 0;
  std::int64_t elements_each = 0;  // of the largest, padding included
  std::int64_t elements = 0;       // of all
};

struct Footprint {
  Choices choices;
  std::vector<UnitKind> units;
  std::vector<CountedExchange> exchanges;  // in the order of their first issue
  MemoryPlan memory;                       // without places of buffers
  double flops = 0;
  double folded_bytes = 0;  // read and written by adding gradients up

  [[nodiscard]] std::int64_t exchanged_bytes() const;  // of all messages
};

// Micro-batches that are unrolled where there is no pipeline: the first and last few, which are all
// that planning memory looks at (memory_plan.cc), and one between them that stands for the rest; or
// one more.
inline constexpr std::int64_t kUnrolledMicros = 9;

// Fails as build() does.
base::Result<Footprint> footprint_of(const spec::ModelSpec& model, const Choices& choices);

// The same of a program that exists already, and of its memory.
Footprint footprint_of(const Program& program, const MemoryPlan& memory);

}  // namespace assay::step
