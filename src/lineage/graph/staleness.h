// Which stages would give something else if they ran now, and why: `assay status`. Pure; files.h
// asks the disk.
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
  kInputRemade,    // the stage that makes an input has made another content since
  kInputChanged,   // the file that was read has another content now
  kInputMissing,   // or is gone
  kChangeUndone,   // it changed a file in place, and the file has been made again since
  kOutputChanged,  // what it left has another content now
  kOutputMissing,  // or is gone
  kUpstream,       // a stage that makes an input is stale
};

struct Reason {
  Cause cause;
  std::string path;
  std::int64_t stage = 0;  // the number of the other stage, if there is one
  // "input raw.txt has changed": one line, with the path as `shown` gives it.
  [[nodiscard]] std::string text(const std::function<std::string(const std::string&)>& shown) const;
};

// For each stage, in the order of LiveStages, the reasons why it is stale; none: it is fresh.
std::vector<std::vector<Reason>> staleness(const LiveStages& stages, const DiskCheck& on_disk);

}  // namespace assay::lineage
