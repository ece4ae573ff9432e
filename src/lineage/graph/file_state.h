// What is at an artifact's path now, compared with what runs left or read there. A user who names a
// path means the file on disk, which may differ from what the newest run left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "lineage/graph/disk_files.h"
#include "lineage/graph/resolve.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

struct FileState {
  enum class Kind {
    kNotChecked,  // the artifact was named by its content
    kUnchanged,   // what `run` left, or read if no run left it
    kEarlier,     // what `run` left; `newest` has left something else since
    kChanged,     // content that no recorded run left or read; `run` left or read the artifact
    kGone,
  };
  Kind kind = Kind::kNotChecked;
  store::RunId run = 0;
  bool made = true;  // `run` left the file; false: it only read it
  // Of `run`, if it left the file. A run that did not end well may have left a part of it.
  store::RunStatus status = store::RunStatus::kDone;
  store::RunId newest = 0;          // for kEarlier
  std::optional<hash::Digest> now;  // for kChanged
  bool others_follow = false;       // kChanged: what `run` left is followed by lines of others
  std::int64_t modified_unix_ns = 0;
  std::int64_t files = 0, changed = 0, gone = 0;  // for a folder

  // One sentence: "unchanged since run 3". `when` is the time of the last change, as text.
  [[nodiscard]] std::string text(const std::string& when) const;
};

// Reads the file. If the artifact was named by its path and the file has the content of an earlier
// run, sets `artifact` to that content.
base::Result<FileState> read_file_state(store::Store& store, DiskFiles& disk, Artifact& artifact);

base::Json to_json(const FileState& state);

}  // namespace assay::lineage
