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

// `name` is whose text it is, for errors. A record may have fewer fields than there are columns, or
// more: whoever knows what they mean judges that. A quote that nothing closes ends with its line,
// and what follows is read. Fails where there is no header, or a column has two places.
Result<CsvTable> parse_csv(std::string_view text, const std::string& name);

// A field as it is written, in quotes where it needs them.
std::string csv_field(std::string_view text);

}  // namespace assay::base
