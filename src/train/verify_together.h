// verify_together(): all ranks verify the checkpoint from which they are about to resume, each a
// share of its files. If one rank verified all of it, that would take many times as long, and the
// others would wait for it in a call that has a time limit.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/checkpoint/checkpoint.h"

namespace assay::train {

struct Verified {
  std::optional<checkpoint::Checkpoint> whole;  // opened on every rank; or:
  std::string damage;                           // what is wrong with it, the same on every rank
};

// Every rank calls it with the same folder. A damaged checkpoint is a result; an error means that a
// rank was lost or has read nothing for `timeout`. While ranks read, they exchange a short message
// about every second, so that no call comes near its time limit.
//
// With a single rank, `meanwhile` is called with the checkpoint while its contents are being
// verified; what it reads then comes from the page cache, and must be used only if the checkpoint
// turns out to be intact. (With several ranks, each is busy with the messages.)
using WhileChecked = std::function<void(const checkpoint::Checkpoint&)>;
base::Result<Verified> verify_together(
    const std::filesystem::path& folder, comm::Communicator& ranks, int threads,
    const WhileChecked& meanwhile = {},
    std::chrono::milliseconds timeout = std::chrono::minutes(10));

}  // namespace assay::train
