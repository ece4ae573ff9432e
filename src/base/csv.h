// Tables as comma-separated values (RFC 4180): the first record names the columns, fields may be
// quoted, quotes in them are doubled, and a quoted field may have commas and ends of lines.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::base {

struct CsvTable {
  std::vector<std::string> columns;
  struct Record {
    std::size_t line = 0;  // of its beginning, from 1
    std::vector<std::string> fields;
    bool unclosed = false;  // its last field has a quote that nothing closes
  };
  std::vector<Record> records;

  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
};

// `name` names the text in errors. A record may have fewer or more fields than there are columns:
// the caller checks that. A quote that nothing closes ends with its line, and parsing goes on after
// it. Fails if there is no header, or if two columns have the same name.
Result<CsvTable> parse_csv(std::string_view text, const std::string& name);

// A field as it is written, in quotes where it needs them.
std::string csv_field(std::string_view text);

}  // namespace assay::base
