// What is known of the terminal behind a stream.
#pragma once

#include <cstddef>
#include <optional>

namespace assay::base {

// Columns of the terminal behind a file descriptor; nothing when it is none or does not say.
std::optional<std::size_t> terminal_columns(int fd);

}  // namespace assay::base
