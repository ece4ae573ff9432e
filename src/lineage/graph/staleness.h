// Which stages are stale, and why: `assay status`. A stage is stale if it might produce something
// else now. Pure; disk_files.h reads the disk.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lineage/graph/live_stages.h"

namespace assay::lineage {

enum class OnDisk { kSame, kChanged, kMissing };
// Whether the file at `path` has this content now.
using DiskCheck =
    std::function<OnDisk(const std::string& path, const hash::Digest& content, std::int64_t size)>;

enum class Cause {
  kInputRemade,   // the stage that produces an input has produced other content since
  kInputChanged,  // an input has other content now
  kInputMissing,
  kChangeUndone,   // it changed a file in place, and the file has been produced again since
  kOutputChanged,  // an output has other content now
  kOutputMissing,
  kUpstream,  // a stage that produces an input is stale
};

struct Reason {
  Cause cause;
  std::string path;
  std::int64_t stage = 0;  // the number of the other stage, if there is one
  // "input raw.txt has changed": one line, with the path formatted by `shown`.
  [[nodiscard]] std::string text(const std::function<std::string(const std::string&)>& shown) const;
};

// For each stage, in the order of LiveStages, the reasons why it is stale; empty: it is fresh.
std::vector<std::vector<Reason>> staleness(const LiveStages& stages, const DiskCheck& on_disk);

}  // namespace assay::lineage
