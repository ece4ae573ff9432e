// The document in a line of JSON: the string in one key of an object. The rest of the object is
// checked, and not kept. And the documents of all lines of a unit.
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

// Some lines of a file, and what is said of them in errors. Blank lines have no document.
struct JsonLines {
  std::string_view text;
  std::uint64_t rows_before = 0;
  const std::string& path;
  const std::string& column;
};
base::Result<void> for_each_document(
    const JsonLines& lines, const std::function<base::Result<void>(const std::string&)>& take);

}  // namespace assay::data
