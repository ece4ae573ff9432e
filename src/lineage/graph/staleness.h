// Which stages are stale, and why: `assay status`. A stage is stale if it might produce something
// else now. Pure; disk_files.h reads the disk.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lineage/graph/live_stages.h"

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
};

enum class Cause {
  kInputRemade,   // the stage that produces an input has produced other content since
  kInputChanged,  // an input has other content now
  kInputMissing,
  kChangeUndone,   // it changed a file in place, and the file has been produced again since
  kOutputChanged,  // an output has other content now
  kOutputMissing,
  kUpstream,       // a stage that produces an input is stale
  kLinkMoved,      // a symbolic link through which a file was read leads elsewhere now, or is gone
  kMadeLinkMoved,  // the same of one that the stage made
  kListedMore,     // a folder that was listed has a new file
  kListedGone,     // a folder that was listed is gone, or a name in it
  kAppeared,       // a file that was looked for and not there is there now
};

// "input-changed", …: for JSON.
std::string_view name_of(Cause cause);

struct Reason {
  Cause cause;
  std::string path;
  std::int64_t stage = 0;  // the number of the other stage, if there is one
  // kInputChanged of a stage's output, kOutputChanged: who did it, if that was asked. 0: nobody
  // whose run is recorded.
  std::optional<store::RunId> writer = std::nullopt;
  std::string now = {};  // where a link leads
  // "input raw.txt has changed": one line, with the path formatted by `shown`.
  [[nodiscard]] std::string text(const std::function<std::string(const std::string&)>& shown) const;
};

// For each stage, in the order of LiveStages, the reasons why it is stale; empty: it is fresh.
std::vector<std::vector<Reason>> staleness(const LiveStages& stages, const DiskCheck& on_disk);
std::vector<std::vector<Reason>> staleness(const LiveStages& stages, const DiskQuestions& disk);

// The files that a run of the stage would write and that hold now what no recorded run left: edits
// that would be lost. The stage need not be the one that wrote them last. Logs do not count, nor
// does a file of which no content was recorded.
std::vector<std::string> edited_outputs(const LiveStages& stages, std::size_t stage,
                                        const DiskQuestions& disk);

}  // namespace assay::lineage
