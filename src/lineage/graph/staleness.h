// Which stages are stale or in doubt, and why: `assay status`. A stage is stale if it would
// probably produce something else now, and in doubt if that is not known. Pure; disk_files.h reads
// the disk.
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

// All queries about the disk. Those that are empty are not made.
struct DiskQueries {
  DiskCheck content;
  // Whether the file at `path` begins with this content.
  std::function<bool(const std::string& path, const hash::Digest& content, std::int64_t size)>
      begins = {};
  // The target of the symbolic link at `path`; nothing: there is no link.
  std::function<std::optional<std::string>(const std::string& path)> link = {};
  std::function<bool(const std::string& path)> exists = {};
  // What exists at `path`, links followed, as store::queried_state() has it; nothing: nothing does.
  std::function<std::optional<std::string>(const std::string& path, bool size)> state = {};
  // Whether a name in a listed folder counts, "d/a" or "d/b/": it is not left out by the project's
  // rules (lineage/filter). Empty: all do.
  std::function<bool(const std::string& path)> counts = {};
  // The names in a folder: "a", or "b/" for a folder; nothing: it cannot be listed.
  std::function<std::optional<std::vector<std::string>>(const std::string& path)> names = {};
  // The run that left what is at `path` now; 0: no recorded run, so it was changed by hand or by an
  // unrecorded program.
  std::function<store::RunId(const std::string& path)> writer = {};
  // The interpreter at `path` now; nothing: none.
  std::function<std::optional<Interpreter>(const std::string& path)> interpreter = {};
  // The ctime (content, name or permissions) of what is at `path`; links are not followed. Nothing:
  // it does not exist.
  std::function<std::optional<std::int64_t>(const std::string& path)> changed_unix_ns = {};
};

struct Freshness {
  std::vector<Reason> reasons;  // why the stage is stale; empty: it is not
  std::vector<Reason> doubts;   // why it is not known to be fresh
};

// Of each stage, in the order of LiveStages.
std::vector<Freshness> freshness(const LiveStages& stages, const DiskQueries& disk);

// The outputs of the stage that a later run of another stage replaced without reading them, so that
// what the stage left there is gone (kOutputReplaced). Stages that append to a file or change it in
// place do not replace it. The stage is not stale for that: if all stages ran in order, the other
// one would replace the file again.
std::vector<Reason> replaced_outputs(const LiveStages& stages, std::size_t stage,
                                     const DiskQueries& disk);

// The files that a run of the stage would overwrite although no recorded run left their present
// content: edits that would be lost. Another stage may have written them last, and the stage's
// current run may not have written them at all: `make` leaves an edited file alone until its
// sources change. Files without a recorded content do not count, nor do those that were handed
// down: a run only adds to what others wrote there.
std::vector<std::string> edited_outputs(const LiveStages& stages, std::size_t stage,
                                        const DiskQueries& disk);

}  // namespace assay::lineage
