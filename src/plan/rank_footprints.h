// RankFootprints: what the ranks of a job exchange and hold, from the programs that our trainer
// executes for it (step/footprint.h).
//
// Ranks of one stage of a pipeline have programs of the same sizes, so one of them is built (a few
// with Muon, which keeps matrices whole, tensor parallelism, whose norms some ranks have, and
// context parallelism, whose pieces see different numbers of keys);
// and of stages in the middle with as many layers, the first and the last: one of them holds most.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "plan/model/memory.h"
#include "spec/job.h"
#include "step/footprint.h"

namespace assay::plan {

// What the trainer runs a rank on.
struct RankDevice {
  bool cpu = false;
  base::Bytes memory;  // of a rank; 0: not known
  base::Bytes extra;   // that the device's libraries take besides the program
};
// A job's own: of a GPU's libraries an estimate; on CPUs the ranks of a node share its memory.
RankDevice device_of(const spec::JobSpec& job);

struct RankFootprints {
  spec::Recompute recompute = spec::Recompute::kNone;  // the job's, or as the trainer chooses it
  std::vector<step::Footprint> ranks;                  // one of each kind

  [[nodiscard]] const step::Footprint& largest() const;  // by memory
  [[nodiscard]] const step::Footprint& busiest() const;  // by bytes that it exchanges
};

// Fails, naming the key, for what the trainer cannot execute, and for what is too long to unroll.
base::Result<RankFootprints> rank_footprints(const spec::JobSpec& job, const RankDevice& device);

MemoryNeed memory_of(const step::Footprint& footprint, base::Bytes extra);

// Of the rank that needs most, on the job's own devices: what plans, scaling and searches decide by
// whether it fits. Nothing for what has no programs that can be counted.
std::optional<MemoryNeed> counted_memory(const spec::JobSpec& job);

// The ranks whose programs are built; a test compares them with all.
std::vector<std::int64_t> distinct_ranks(const spec::JobSpec& job);

// Where ranks have different experts: for how many rows of theirs a rank has room, and how many
// come if the load is even. Empty where rows do not depend on the tokens.
std::string room_for_experts(const spec::ModelSpec& model, const step::Choices& choices);

}  // namespace assay::plan
