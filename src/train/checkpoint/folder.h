// The names in a folder of checkpoints, and the ways in which a folder there comes and goes.
//
//   step-N                  a checkpoint: whole, or damaged by someone else
//   .step-N.tmp-OWNER-K     one that OWNER is writing, or was when it was killed
//   .step-N.was-OWNER-K     the one that a new step-N is about to replace, where two names cannot
//   be
//                           exchanged at once
//   .step-N.gone-OWNER-K    one that is being removed
//
// OWNER names a process for good: the machine's boot and process namespace, pid, and start time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::checkpoint {

std::string step_name(std::int64_t step);
// "step-12" -> 12; nothing for other names.
std::optional<std::int64_t> step_of(std::string_view name);

enum class HiddenKind { kTmp, kWas, kGone };

// What a hidden name says.
struct HiddenName {
  std::int64_t step = 0;
  HiddenKind kind = HiddenKind::kTmp;
  std::string machine;  // its boot and process namespace
  std::int64_t pid = 0;
  std::int64_t start_ticks = 0;
};
std::optional<HiddenName> parse_hidden(std::string_view name);
// A name of this process that has not been used before.
std::string hidden_name(std::int64_t step, HiddenKind kind);

// The steps that have a folder, ascending. A root that does not exist is an error.
base::Result<std::vector<std::int64_t>> steps_in(const std::filesystem::path& root);

// Whether the one who made the name is gone: by pid and start time on this machine. Of others
// nothing is known; they count as gone when the folder has not changed for an hour.
bool owner_is_gone(const HiddenName& name, const std::filesystem::path& folder);

// Moves a checkpoint's folder out of sight and removes it, unless someone reads it: then it stays
// under its hidden name (`folder` is hidden) or as it is. False: someone reads it.
base::Result<bool> remove_folder(const std::filesystem::path& root, const std::string& name,
                                 std::int64_t step);

// Removes what killed writers left, puts back what a killed writer had moved aside, and finishes
// removals. Nothing of a living process is touched.
base::Result<void> sweep(const std::filesystem::path& root);

}  // namespace assay::checkpoint
