// The limit on the size of files that this process may write (`ulimit -f`), which fails like a full
// disk: error texts tell them apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay::base {

// In bytes; nothing: there is none.
std::optional<std::uint64_t> file_size_limit();

// "the file-size limit (ulimit -f) is 16.0 KiB"; empty: there is none.
std::string file_size_limit_text();

// Beyond the limit write() then fails, instead of a signal that ends the process. Programs that are
// executed are not affected.
void survive_file_size_limit();

}  // namespace assay::base
