// The names in a folder of checkpoints:
//
//   step-N                  a checkpoint: complete, or damaged from outside
//   .step-N.tmp-OWNER-K     being written by OWNER, or left behind when OWNER was killed
//   .step-N.was-OWNER-K     about to be replaced by a new step-N, on file systems that cannot
//                           exchange two names atomically
//   .step-N.gone-OWNER-K    being removed
//
// OWNER identifies a process for good: the machine's boot and process namespace, pid, start time.
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

struct HiddenName {
  std::int64_t step = 0;
  HiddenKind kind = HiddenKind::kTmp;
  std::string machine;  // boot and process namespace
  std::int64_t pid = 0;
  std::int64_t start_ticks = 0;
};
std::optional<HiddenName> parse_hidden(std::string_view name);
// A new hidden name owned by this process.
std::string hidden_name(std::int64_t step, HiddenKind kind);

// The steps that have a folder, ascending. A root that does not exist is an error.
base::Result<std::vector<std::int64_t>> steps_in(const std::filesystem::path& root);

// Whether the owner has exited: by pid and start time on this machine; on another machine, when the
// folder has not changed for an hour.
bool owner_has_exited(const HiddenName& name, const std::filesystem::path& folder);

}  // namespace assay::checkpoint
