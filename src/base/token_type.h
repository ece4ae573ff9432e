// How files of tokens store a token; a job names the type of files that do not say it.
#pragma once

#include <cstdint>

namespace assay::base {

// Two or four bytes each, little-endian.
enum class TokenType : std::uint8_t { kU16, kU32 };

}  // namespace assay::base
