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

// The progress of a run, without its tensors.
struct Position {
  std::int64_t step = 0;     // completed
  std::int64_t tokens = 0;   // consumed
  std::uint64_t cursor = 0;  // in the data (train/data/window_order.h)
};

// Called by every rank between steps: returns the tensors that this rank saves. The copy may still
// be in progress (Snapshot::ready) when the next step starts; only one snapshot at a time. With
// several ranks the snapshot still needs a share (agree_on_share).
base::Result<checkpoint::Snapshot> take_snapshot(Backend& backend, const step::Program& program,
                                                 const spec::JobSpec& job,
                                                 const Position& position);

// Called by every rank before it submits a snapshot: agrees on the folder to which all ranks write
// this checkpoint. No share if rank 0 cannot create it.
struct AgreedShare {
  std::optional<checkpoint::RankOfWrite> share;
  std::optional<base::Error> failure;  // why there is no share; only on rank 0
};
base::Result<AgreedShare> agree_on_share(comm::Communicator& ranks,
                                         const std::filesystem::path& root, std::int64_t step);

// Called by every rank: merges Backend::algorithms() of all ranks with the same device and
// libraries as rank 0. Pipeline stages compute different products; a checkpoint stores those of
// all.
base::Result<std::string> all_algorithms(comm::Communicator& ranks, const std::string& own);

// What must be equal to resume a checkpoint: the parameters, one line each, and what determines the
// tokens of a step.
std::string layout_text(const step::Program& program);
base::Json batch_facts(const spec::JobSpec& job);
// What may change when a run is resumed: learning rate and warm-up, which are kept unless the job
// sets them (keep_recipe), and the length of the run, on which their defaults depend.
base::Json recipe_facts(const spec::JobSpec& job);

}  // namespace assay::train
