// Why a stage is not fresh, as data and as a line of text.
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
  kOutputReplaced,  // another stage has written the file anew since: no reason to be stale
  kUpstream,        // a stage that produces an input is stale
  kLinkMoved,       // a symbolic link through which a file was read leads elsewhere now, or is gone
  kMadeLinkMoved,   // the same for a link that the stage made
  kListedMore,      // a folder that was listed has a new file
  kListedGone,      // a folder that was listed, or a name in it, is gone
  kListedOwn,       // a folder that was listed has a file that the stage made after that
  kQueriedChanged,  // a file that the stage asked about has another size or is something else now
  kQueriedGone,     // a file that the stage asked about is gone
  kChangesAgain,    // the stage changes in place what no stage makes: it would do that again
  kIncomplete,      // its run missed something
  kInterpreter,     // the stage's interpreter has another version now, or is gone
  kAppeared,        // a file that the stage looked for and did not find exists now
};

// "input-changed", …: for JSON.
std::string_view name_of(Cause cause);

struct Reason {
  Cause cause;
  std::string path;
  std::int64_t stage = 0;  // the number of the other stage, if there is one
  // For kOutputChanged, and kInputChanged if the input is a stage's output: the run that changed
  // the file. 0: no recorded run; nothing: not determined.
  std::optional<store::RunId> writer = std::nullopt;
  // Where the link leads now; which interpreter it is now; what the file is now; what was missed.
  std::string now = {};
  // What is in the link's place now: "file", "folder"; empty: a link or nothing.
  std::string instead = {};
  // "input raw.txt has changed": one line, with the path formatted by `shown`.
  [[nodiscard]] std::string text(const std::function<std::string(const std::string&)>& shown) const;
};

}  // namespace assay::lineage
