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
    std::size_t line = 0;  // where it begins, from 1
    std::vector<std::string> fields;
    bool unclosed = false;  // its last field has an unclosed quote
  };
  std::vector<Record> records;

  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
};

// `name` names the text in errors. Records may have fewer or more fields than columns; the caller
// checks that. An unclosed quote ends at its line's end, and parsing continues on the next line.
// Fails if there is no header, or if two columns have the same name.
Result<CsvTable> parse_csv(std::string_view text, const std::string& name);

// A field as written in CSV, quoted if necessary.
std::string csv_field(std::string_view text);

}  // namespace assay::base
