// Outline: the micro-batches of one rank's step as a short list of distinct ops, each with how
// often it is executed; without buffers, and without the optimizer. The outline of any layout takes
// microseconds to make.
//
// For a job on one rank it has the same ops as the program of step::build, as often, with the same
// flops and bytes (outline_test.cc compares them). It also covers what programs cannot do yet:
// tensor, context, expert and pipeline parallelism, mixtures, and nanochat's blocks. The planner
// takes the collectives of activations from it (plan/exchange/activations.h); step times come from
// a closed form (plan/model), whose flops a test compares with outlines.
#pragma once

#include <cstdint>
#include <vector>

#include "spec/job.h"
#include "step/collective.h"
#include "step/layout.h"
#include "step/program.h"

namespace assay::step {

// How a model is cut, and the part of it that one rank has.
struct Cut {
  std::int64_t tensor = 1;  // ranks over which heads and the MLP's width are spread
  bool sequence_parallel = false;
  std::int64_t context = 1;  // ranks over which each sequence is spread
  std::int64_t expert = 1;   // ranks over which experts are spread
  // A pipeline's stage.
  std::int64_t layers = 0;  // 0: all
  bool first = true;        // has the embedding
  bool last = true;         // has the head
};

struct OutlineOp {
  Kind kind = Kind::kMatmul;
  Phase phase = Phase::kForward;
  Part part = Part::kQkv;
  // Of a product: rows and columns of its result, and what is summed over.
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool fp8 = false;
  double flops = 0;  // of one
  double bytes = 0;  // read and written by one
  double count = 0;  // per optimizer step
};

// Among ranks that share a model. What replicas exchange once per step is in
// plan/exchange/communication.h.
struct OutlineCollective {
  Collective collective;
  Axis axis = Axis::kTensor;
  Phase phase = Phase::kForward;
  double count = 0;  // per optimizer step
};

struct Outline {
  std::vector<OutlineOp> ops;
  std::vector<OutlineCollective> collectives;
  double parameters = 0;  // on this rank before state is spread, padding included

  [[nodiscard]] double flops() const;
};

struct OutlineChoices {
  Numerics numerics;
  spec::Recompute recompute = spec::Recompute::kNone;  // not kAuto
  spec::Optimizer optimizer = spec::Optimizer::kAdamw;
  std::int64_t sequence = 0;
  std::int64_t micro_batch = 1;
  std::int64_t accumulate = 1;
  Cut cut;
};

// For models and layouts that went through the rules of spec: every cut divides what it cuts.
Outline outline(const spec::ModelSpec& model, const OutlineChoices& choices);

}  // namespace assay::step
