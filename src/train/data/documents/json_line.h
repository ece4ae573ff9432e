// The document in a line of JSON: the string in one key of an object. The rest of the object is
// checked, and not kept.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::data {

// Replaces `text`. The error says what is wrong with the line, not where the line is.
base::Result<void> document_of_line(std::string_view line, const std::string& column,
                                    std::string& text);

}  // namespace assay::data
