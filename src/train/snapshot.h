// Snapshots: everything that the next step depends on, as input for a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "comm/communicator.h"
#include "spec/job.h"
#include "train/backend.h"
#include "train/checkpoint/write.h"

namespace assay::train {

// The progress of a run, apart from its tensors.
struct Position {
  std::int64_t step = 0;     // completed
  std::int64_t tokens = 0;   // consumed
  std::uint64_t cursor = 0;  // in the data (train/data/window_order.h)
};

// Called by every rank between steps: the tensors that this rank saves. The copy may still be in
// progress (Snapshot::ready) while the next step starts; one snapshot at a time. With several ranks
// the snapshot still needs its share (agree_on_share).
base::Result<checkpoint::Snapshot> take_snapshot(Backend& backend, const step::Program& program,
                                                 const spec::JobSpec& job,
                                                 const Position& position);

// Called by every rank before it submits a snapshot: where all of them write this checkpoint. No
// share if rank 0 cannot begin one.
struct AgreedShare {
  std::optional<checkpoint::Share> share;
  std::optional<base::Error> failure;  // why there is none; rank 0 knows
};
base::Result<AgreedShare> agree_on_share(comm::Communicator& ranks,
                                         const std::filesystem::path& root, std::int64_t step);

// Called by every rank: Backend::algorithms() of all of them together, of ranks whose device and
// libraries are those of rank 0. Stages compute other products, and a checkpoint has them all.
base::Result<std::string> all_algorithms(comm::Communicator& ranks, const std::string& own);

// What must be equal for a checkpoint to be resumed: the parameters, one line each, and what
// determines the tokens of a step.
std::string layout_text(const step::Program& program);
base::Json batch_facts(const spec::JobSpec& job);
// What may differ, but where the job does not set it (keep_recipe): learning rate, warm-up and the
// length of the run, which the first two follow from.
base::Json recipe_facts(const spec::JobSpec& job);

}  // namespace assay::train
