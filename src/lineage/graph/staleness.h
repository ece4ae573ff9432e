// Which stages are stale, and why: `assay status`. A stage is stale if it might produce something
// else now. Pure; disk_files.h reads the disk.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lineage/graph/live_stages.h"
#include "lineage/graph/stale_reason.h"
#include "lineage/packages/interpreter.h"

namespace assay::lineage {

enum class OnDisk { kSame, kChanged, kMissing };
// Whether the file at `path` has this content now.
using DiskCheck =
    std::function<OnDisk(const std::string& path, const hash::Digest& content, std::int64_t size)>;

// What else is asked about the disk; a question that is not given is not asked.
struct DiskQuestions {
  DiskCheck content;
  // Where the symbolic link at `path` leads, as text; nothing: there is none.
  std::function<std::optional<std::string>(const std::string& path)> link = {};
  std::function<bool(const std::string& path)> exists = {};
  // The names in a folder, "a", and "b/" for folders; nothing: it cannot be listed.
  std::function<std::optional<std::vector<std::string>>(const std::string& path)> names = {};
  // The run that left what is at `path` now; 0: none did, so it was changed by hand or by something
  // that was not recorded.
  std::function<store::RunId(const std::string& path)> writer = {};
  // The interpreter at `path` now; nothing: none.
  std::function<std::optional<Interpreter>(const std::string& path)> interpreter = {};
  // When what is at `path`, a link itself, was last changed: contents, name or permissions.
  // Nothing: it is not there.
  std::function<std::optional<std::int64_t>(const std::string& path)> changed_unix_ns = {};
};

// For each stage, in the order of LiveStages, the reasons why it is stale; empty: it is fresh.
std::vector<std::vector<Reason>> staleness(const LiveStages& stages, const DiskCheck& on_disk);
std::vector<std::vector<Reason>> staleness(const LiveStages& stages, const DiskQuestions& disk);

// The files that a run of the stage would write and that hold now what no recorded run left: edits
// that would be lost. The stage need not be the one that wrote them last, and its current run need
// not have written them: `make` leaves an edited file alone until what it is made of changes. Logs
// do not count, nor does a file of which no content was recorded.
std::vector<std::string> edited_outputs(const LiveStages& stages, std::size_t stage,
                                        const DiskQuestions& disk);

}  // namespace assay::lineage
