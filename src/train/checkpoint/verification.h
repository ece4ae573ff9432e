// Verification: hashes files of a checkpoint on other threads while the caller reads their tensors,
// so that each byte comes from the disk once: whichever comes second reads from the page cache.
//
//   Verification verification(checkpoint, {"weights"});
//   auto read = …;                                               // not to be used yet
//   ASSAY_TRY(read, verification.finish(std::move(read)));       // now it may be
#pragma once

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/checkpoint.h"

namespace assay::checkpoint {

class Verification {
 public:
  // Of the files of these parts; empty: of all files.
  explicit Verification(Checkpoint of, std::vector<std::string> parts = {});
  Verification(const Verification&) = delete;
  Verification& operator=(const Verification&) = delete;
  // Ends hashing early if finish() was not called.
  ~Verification();

  // Waits. An error if a file differs from what was written; call once.
  base::Result<void> finish();
  // The same for a caller whose reading may have failed because of the damage, which then explains
  // more.
  template <class T>
  base::Result<T> finish(base::Result<T> read) {
    ASSAY_TRY_VOID(finish());
    return read;
  }

 private:
  base::Result<void> outcome_;
  std::jthread thread_;  // last: uses the member above
};

}  // namespace assay::checkpoint
