// HashTask: one file to be hashed in a known state, and the result.
//
// There is a digest only if the file was in the expected state before and after hashing. It is
// cacheable only if the file was also not "racily new": file times advance in ticks, so a file that
// changed within the tick in which it was hashed may change again and keep its stamp. Such a digest
// is valid for this run, because the run's own changes are announced before they happen, but not
// for later runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "hash/digest.h"
#include "hash/file.h"

namespace assay::lineage {

struct HashTask {
  std::uint32_t id = 0;  // chosen by the owner of the queue
  // The path in two pieces, which must outlive the task.
  const std::string* folder = nullptr;
  const char* name = nullptr;
  base::UniqueFd fd;  // if valid, this is hashed, and the path is for messages
  hash::FileStamp expected;
};

struct HashResult {
  enum class State : std::uint8_t {
    kDone,
    kChanged,     // the file is not, or did not stay, as expected
    kGone,        // nothing or another file is at the path
    kUnreadable,  // see `error`
  };
  std::uint32_t id = 0;
  State state = State::kUnreadable;
  bool cacheable = false;
  hash::Digest digest;
  hash::FileStamp stamp;  // at the time of hashing
  std::unique_ptr<std::string> error;
};

// The change time may differ from the expected one: renaming, linking and chmod change it, and the
// run may do those to a file it has read. The digest is then not cacheable.
HashResult hash_task(const HashTask& task, const hash::HashOptions& options);

// Whether a file with this stamp may change after `now_ns` (wall clock) without a new stamp.
bool racily_new(const hash::FileStamp& stamp, std::int64_t now_ns);
// The clock that file times come from.
std::int64_t file_clock_ns();
// The clock of the file system that this folder is on, which may be a file server's: sets the
// folder's times to "now" and reads them back. file_clock_ns() if that is not possible.
std::int64_t file_system_clock_ns(const std::string& folder);

}  // namespace assay::lineage
