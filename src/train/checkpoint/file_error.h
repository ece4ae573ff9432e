// What can go wrong with the disk, in words that say what to do about it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace assay::checkpoint {

// "WHERE: cannot DO: the disk is full; free some space …"
base::Error file_error(const std::string& where, std::string_view doing, int errno_value);

}  // namespace assay::checkpoint
