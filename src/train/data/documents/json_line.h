// Reads a document from a line of JSON: the string under one key of an object. The rest of the
// object is validated and discarded. for_each_document() does so for all lines of a unit. Rows of
// Parquet files come as such lines, so the same rules hold for both.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::data {

// Replaces `text`; false: the key's value is null, so the row has no document. The error says what
// is wrong with the line, not where the line is.
base::Result<bool> document_of_line(std::string_view line, const std::string& column,
                                    std::string& text);

// Rows without a document.
struct RowsWithout {
  std::uint64_t null = 0;                     // the column is null
  std::uint64_t bad = 0;                      // not valid, and skipped because that was asked for
  std::optional<base::Error> first_bad = {};  // what is wrong with the first of them

  RowsWithout& operator+=(const RowsWithout& later);
  // "; 3 rows without text; 2 bad rows skipped, the first is x.jsonl: row 4: …", or nothing.
  [[nodiscard]] std::string text() const;
};

// Some lines of a file, with what errors need to name them. Blank lines have no document.
struct JsonLines {
  std::string_view text;
  std::uint64_t rows_before = 0;
  const std::string& path;
  const std::string& column;
  bool skip_bad = false;  // a bad row is counted; otherwise it is an error
};
base::Result<void> for_each_document(
    const JsonLines& lines, RowsWithout& without,
    const std::function<base::Result<void>(const std::string&)>& take);

}  // namespace assay::data
