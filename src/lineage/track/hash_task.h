// HashTask: one file to be hashed in a state that is known beforehand, and what came of it.
//
// A digest is only given if the file was in the expected state before and after. It is only marked
// as fit for the cache if, besides, the file was not "racily new": file systems mark times in
// ticks, so a file that changed within the tick in which it was hashed may change once more and
// look the same. For this run such a digest is good, because what the run itself changes is
// announced first; for later runs it is not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "hash/digest.h"
#include "hash/file.h"

namespace assay::lineage {

struct HashTask {
  std::uint32_t id = 0;  // the owner's
  // The path in two pieces, which must outlive the task.
  const std::string* folder = nullptr;
  const char* name = nullptr;
  base::UniqueFd fd;  // if valid, this is hashed, and the path only named
  hash::FileStamp expected;
};

struct HashResult {
  enum class State : std::uint8_t {
    kDone,
    kChanged,     // the file is not, or did not stay, as expected
    kGone,        // nothing, or another file, is at the path
    kUnreadable,  // see `error`
  };
  std::uint32_t id = 0;
  State state = State::kUnreadable;
  bool cacheable = false;
  hash::Digest digest;
  hash::FileStamp stamp;  // when it was hashed
  std::unique_ptr<std::string> error;
};

// The change time may differ from the expected one: renaming, linking and chmod change it, and the
// run may do those to a file that it has read. The digest is then not fit for the cache.
HashResult hash_task(const HashTask& task, const hash::HashOptions& options);

// Whether a file with this stamp may change after `now_ns` (wall clock) without a new stamp.
bool racily_new(const hash::FileStamp& stamp, std::int64_t now_ns);
// The clock that file times come from.
std::int64_t file_clock_ns();

}  // namespace assay::lineage
