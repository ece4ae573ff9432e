// A run at one moment: everything that its next step depends on, on its way into a checkpoint.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "comm/communicator.h"
#include "spec/job.h"
#include "train/backend.h"
#include "train/checkpoint/write.h"

namespace assay::train {

// Where a run stands, apart from its tensors.
struct Position {
  std::int64_t step = 0;    // done
  std::int64_t tokens = 0;  // read
  std::uint64_t cursor = 0;
};

// Between steps, by every rank. The first gets whole tensors, put together from what each holds,
// and the others none. Of a rank that is alone the tensors may still be on their way
// (Snapshot::ready) while its next step begins; one snapshot at a time.
base::Result<checkpoint::Snapshot> take_snapshot(Backend& backend, comm::Communicator& ranks,
                                                 const step::Program& program,
                                                 const spec::JobSpec& job,
                                                 const Position& position);

// What must be equal for a checkpoint to be continued: a line per parameter, and what decides which
// tokens a step reads.
std::string layout_text(const step::Program& program);
base::Json batch_facts(const spec::JobSpec& job);

}  // namespace assay::train
