// What is at an artifact's path now, compared with what runs left or read there. A question about a
// file is a question about the file on disk, which may be another one than the newest run left.
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
    kNotAsked,   // the artifact was named by its content
    kUnchanged,  // what `run` left, or read if no run left it
    kEarlier,    // what `run` left, and `newest` something else since
    kChanged,    // no recorded run left or read what is there; `run` left or read the artifact
    kGone,
  };
  Kind kind = Kind::kNotAsked;
  store::RunId run = 0;
  bool made = true;                 // `run` left it; else it only read it
  store::RunId newest = 0;          // of kEarlier
  std::optional<hash::Digest> now;  // of kChanged
  std::int64_t modified_unix_ns = 0;
  std::int64_t files = 0, changed = 0, gone = 0;  // of a folder

  // One sentence, with `time` for points in time: "unchanged since run 3".
  [[nodiscard]] std::string text(const std::string& when) const;
};

// Looks at the file. An artifact that was named by its path and has at that path what an earlier
// run left or read becomes that content.
base::Result<FileState> look_at(store::Store& store, DiskFiles& disk, Artifact& artifact);

base::Json to_json(const FileState& state);

}  // namespace assay::lineage
