// Reads a document from a line of JSON: the string under one key of an object. The rest of the
// object is validated and discarded. for_each_document() does so for all lines of a unit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::data {

// Replaces `text`. The error says what is wrong with the line, not where the line is.
base::Result<void> document_of_line(std::string_view line, const std::string& column,
                                    std::string& text);

// Some lines of a file, with what errors need to name them. Blank lines have no document.
struct JsonLines {
  std::string_view text;
  std::uint64_t rows_before = 0;
  const std::string& path;
  const std::string& column;
};
base::Result<void> for_each_document(
    const JsonLines& lines, const std::function<base::Result<void>(const std::string&)>& take);

}  // namespace assay::data
