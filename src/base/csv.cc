#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace assay::base {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  // Nothing at the end of the text.
  Result<std::optional<CsvTable::Record>> next() {
    skip_empty_lines();
    if (at_ == text_.size()) return std::nullopt;
    CsvTable::Record record{.line = line_};
    for (;;) {
      ASSAY_TRY(std::string field, read_field());
      record.fields.push_back(std::move(field));
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      end_line();
      return record;
    }
  }

 private:
  void skip_empty_lines() {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) end_line();
  }
  void end_line() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
      ++line_;
    }
  }
  // A carriage return ends a field where a line ends with it, and is a character elsewhere.
  [[nodiscard]] bool at_end_of_field() const {
    if (at_ == text_.size() || text_[at_] == ',' || text_[at_] == '\n') return true;
    return text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n');
  }

  Result<std::string> read_field() {
    std::string field;
    if (at_ < text_.size() && text_[at_] == '"') {
      const std::size_t begun = line_;
      ASSAY_TRY(field, read_quoted(begun));
    }
    while (!at_end_of_field()) field += text_[at_++];
    return field;
  }

  Result<std::string> read_quoted(std::size_t begun) {
    std::string field;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        const bool doubled = at_ + 1 < text_.size() && text_[at_ + 1] == '"';
        ++at_;
        if (!doubled) return field;
      }
      if (text_[at_] == '\n') ++line_;
      field += text_[at_];
    }
    return fail(
        usage_error(fmt::format("{}:{}", name_, begun), "a quote is not closed", "end it with \""));
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::ranges::find(columns, name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

Result<CsvTable> parse_csv(std::string_view text, const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  CsvReader reader(text, name);
  CsvTable table;
  ASSAY_TRY(auto header, reader.next());
  if (!header) {
    return fail(usage_error(name, "is empty", "the first line names the columns"));
  }
  table.columns = std::move(header->fields);
  std::set<std::string_view> seen;
  for (const std::string& column : table.columns) {
    if (seen.insert(column).second) continue;
    return fail(usage_error(fmt::format("{}:{}", name, header->line),
                            fmt::format("two columns are called '{}'", column)));
  }
  for (;;) {
    ASSAY_TRY(auto record, reader.next());
    if (!record) return table;
    table.records.push_back(*std::move(record));
  }
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace assay::base
