// Why a stage is stale, as data and as a line.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "store/run.h"

namespace assay::lineage {

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
  kInterpreter,    // the stage's interpreter is of another version now, or gone
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
  std::string now = {};  // where a link leads; which interpreter it is
  // "input raw.txt has changed": one line, with the path formatted by `shown`.
  [[nodiscard]] std::string text(const std::function<std::string(const std::string&)>& shown) const;
};

}  // namespace assay::lineage
