// What progress and log must agree on: both write to standard error, and a log line must not be
// glued to the end of a progress line.
#pragma once

#include <atomic>
#include <string_view>

namespace assay::base {

// Return to the first column and clear to the end of the line (ECMA-48 EL).
inline constexpr std::string_view kClearLine = "\r\x1b[K";

// True while a progress line stands on standard error.
inline std::atomic<bool> progress_on_stderr = false;

// All of `text` in one write(2) where the system allows it. Never fails and never changes errno:
// there is nobody left to tell.
void write_stderr(std::string_view text);

}  // namespace assay::base
