#include "store/this_run.h"

#include <cstdlib>
#include <string_view>

#include "base/file.h"

namespace assay::store {
namespace {

// "UID:PROJECT", because a path may hold colons and a uid does not.
constexpr std::string_view kRunVariable = "ASSAY_RUN";
constexpr std::string_view kJoinedRunVariable = "ASSAY_RUN_OF_RANKS";
constexpr std::string_view kNotePrefix = "run:";
constexpr std::string_view kNoteVariable = "ASSAY_RUN_OF_RANKS_NOTE";

std::string variable(std::string_view name) {
  const char* value = std::getenv(name.data());
  return value == nullptr ? "" : value;
}

void set_or_unset(base::Environment& environment, std::string_view name, std::string_view value) {
  if (value.empty()) {
    environment.unset(name);
  } else {
    environment.set(name, value);
  }
}

}  // namespace

std::optional<ThisRun> this_run() {
  const char* value = std::getenv(kRunVariable.data());
  if (value == nullptr) return std::nullopt;
  const std::string_view text = value;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || !text.substr(colon + 1).starts_with('/')) {
    return std::nullopt;
  }
  return ThisRun{location_in(text.substr(colon + 1)), std::string(text.substr(0, colon))};
}

void set_run_variable(const ThisRun& run, base::Environment& environment) {
  environment.set(kRunVariable, run.uid + ":" + run.location.project.string());
}

JoinedRun joined_run() {
  return {variable(kJoinedRunVariable), variable(kNoteVariable)};
}

void set_joined_run(const JoinedRun& run, base::Environment& environment) {
  set_or_unset(environment, kJoinedRunVariable, run.run_uid);
  set_or_unset(environment, kNoteVariable, run.note.native());
}

base::Result<void> note_joined_run(const std::filesystem::path& note, const std::string& run_uid) {
  return base::write_file(note, std::string(kNotePrefix) + run_uid);
}

std::optional<std::string> joined_run_of_note(std::string_view text) {
  if (!text.starts_with(kNotePrefix)) return std::nullopt;
  return std::string(text.substr(kNotePrefix.size()));
}

}  // namespace assay::store
