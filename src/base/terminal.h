// Standard error, and the terminal behind a stream. Progress lines and log lines share standard
// error: a log line must not be appended to a progress line.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string_view>

namespace assay::base {

// The width of the terminal behind a file descriptor; nothing if it is not a terminal or has no
// size.
std::optional<std::size_t> terminal_columns(int fd);

// Return to the first column and clear to the end of the line (ECMA-48 EL).
inline constexpr std::string_view kClearLine = "\r\x1b[K";

// True while a progress line is displayed on standard error.
inline std::atomic<bool> progress_on_stderr = false;

// Writes all of `text`, if possible in one write(2). Errors are ignored, because there is nowhere
// left to report them; errno is preserved.
void write_stderr(std::string_view text);

}  // namespace assay::base
