// verify_together(): all ranks check the contents of the checkpoint that they are about to resume,
// each a share of its files. One rank would take as many times as long, and the others would wait
// for it in a call that has a time limit.
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
  std::optional<checkpoint::Checkpoint> whole;  // open, on every rank; or
  std::string damage;                           // what is wrong with it: the same on every rank
};

// Every rank calls it with the same folder. A damaged checkpoint is a result; an error is one of
// the ranks: a rank was lost, or has read nothing for `patience`. While ranks read, they exchange a
// word every second or so, so that no call comes near its limit.
//
// Of a single rank, `meanwhile` is called with the checkpoint while its contents are being checked,
// and may read them, which then come from memory: what it has read counts only if the checkpoint
// turns out whole. (Of several ranks, each must be there for the exchanges.)
using WhileChecked = std::function<void(const checkpoint::Checkpoint&)>;
base::Result<Verified> verify_together(
    const std::filesystem::path& folder, comm::Communicator& ranks, int threads,
    const WhileChecked& meanwhile = {},
    std::chrono::milliseconds patience = std::chrono::minutes(10));

}  // namespace assay::train
