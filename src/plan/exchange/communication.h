// What the ranks of a job exchange about its parameters in one optimizer step: gradients one
// way, weights the other. Activations that tensor, pipeline, context and expert parallelism pass
// around are not parameters and not counted here.
//
//   JobSpec ── RankParameters ── sharded_muon, or data_parallel ── Communication: rows, and calls
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/job.h"
#include "step/collective.h"
#include "step/op.h"

namespace assay::plan {

// What one rank takes part in, by kind: elements, or bytes, of the whole message.
struct Volume {
  std::int64_t reduce_scatter = 0;
  std::int64_t all_gather = 0;
  std::int64_t all_reduce = 0;
  std::int64_t all_to_all = 0;
  std::int64_t send = 0;  // and as much received

  [[nodiscard]] std::int64_t total() const {
    return reduce_scatter + all_gather + all_reduce + all_to_all + send;
  }
  Volume& operator+=(const Volume& other);
  Volume operator*(std::int64_t factor) const;
  bool operator==(const Volume&) const = default;
};

// A row of the table: a group of parameters, the stack that nanochat's Muon makes of equal shapes,
// or units of the trainer's program that differ by their layer alone.
struct GroupTraffic {
  std::string group;
  // The groups of spec::parameters_of in it, or the parts of a unit.
  std::vector<std::string> parameters;
  spec::Optimizer optimizer = spec::Optimizer::kAdamw;
  step::Dtype type = step::Dtype::kBf16;  // of weights
  step::Dtype gradient_type = step::Dtype::kBf16;
  std::int64_t tensors = 0;        // or units
  std::int64_t padded = 0;         // tensors, including zeros that pad a stack
  std::int64_t elements_each = 0;  // of the rank's part of a tensor
  std::int64_t elements = 0;       // of all of them, with padding
  Volume volume;                   // elements per optimizer step

  [[nodiscard]] Volume bytes() const;
  // The reverse: the number of elements in these bytes.
  [[nodiscard]] Volume elements_of(const Volume& bytes) const;
  // Two bytes an element, whatever its type: how volumes are often published.
  [[nodiscard]] Volume two_byte_bytes() const { return volume * 2; }
};

// Between which ranks, for pricing the links.
enum class Among : std::uint8_t {
  kShards,        // fsdp above 1, with cp and, except for experts, ep
  kReplicas,      // dp; without fsdp also cp and, except for experts, ep
  kTensor,        // tp
  kPipelineEnds,  // the first and the last stage
};

// A collective, and how often it is called per optimizer step.
struct Exchange {
  step::Collective collective;
  std::int64_t calls = 1;
  Among among = Among::kShards;
  step::Phase phase = step::Phase::kOptimizer;  // which computation can hide it
};

// All calls of one kind and type.
struct CallSummary {
  step::CollectiveKind kind = step::CollectiveKind::kAllReduce;
  step::Dtype type = step::Dtype::kBf16;
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
  std::int64_t least_bytes = 0;  // of one call
  std::int64_t most_bytes = 0;

  [[nodiscard]] double mean_bytes() const {
    return static_cast<double>(bytes) / static_cast<double>(calls);
  }
};

struct Communication {
  std::string scheme;      // for people
  std::int64_t stage = 0;  // pipeline stage of this rank
  std::vector<GroupTraffic> groups;
  std::vector<Exchange> exchanges;

  [[nodiscard]] Volume bytes() const;
  [[nodiscard]] Volume two_byte_bytes() const;
  // What the rank sends: a ring's share of every message.
  [[nodiscard]] double sent_bytes() const;
  // By kind, then type; kinds in the order of an optimizer step.
  [[nodiscard]] std::vector<CallSummary> calls() const;
};

// What the software that runs a job does in its own way.
struct ExchangeHabits {
  std::optional<step::Dtype> gradients;  // reduced in; none: in the weights' type
  // Ranks that share a sequence or have other experts are FSDP's, even where layout.fsdp is 1.
  bool always_shards = false;
};

// nanochat's own exchange says its types itself. Fails only when the bytes do not fit 64 bits.
base::Result<Communication> communication_of(const spec::JobSpec& job,
                                             const ExchangeHabits& habits = {});

}  // namespace assay::plan
