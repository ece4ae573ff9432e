#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace assay::base {
namespace {

class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {}

  // Nothing at the end of the text.
  std::optional<CsvTable::Record> next() {
    skip_empty_lines();
    if (at_ == text_.size()) return std::nullopt;
    CsvTable::Record record{.line = line_};
    for (;;) {
      record.fields.push_back(read_field(record.unclosed));
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

  std::string read_field(bool& unclosed) {
    std::string field;
    if (at_ < text_.size() && text_[at_] == '"') {
      const std::size_t begin = at_;
      const std::size_t line = line_;
      if (auto quoted = read_quoted()) {
        field = *std::move(quoted);
      } else {
        // Takes the rest of the line, including commas, because it is unknown which of them are
        // text. Happens at most once per text, since all quotes after this one are doubled.
        unclosed = true;
        line_ = line;
        at_ = begin + 1;
        while (at_ < text_.size() && text_[at_] != '\n') field += text_[at_++];
        if (field.ends_with('\r')) field.pop_back();
      }
    }
    while (!at_end_of_field()) field += text_[at_++];
    return field;
  }

  // Nothing if the quote is not closed.
  std::optional<std::string> read_quoted() {
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
    return std::nullopt;
  }

  std::string_view text_;
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
  CsvReader reader(text);
  CsvTable table;
  auto header = reader.next();
  if (!header) {
    return fail(usage_error(name, "is empty", "the first line names the columns"));
  }
  if (header->unclosed) {
    return fail(usage_error(fmt::format("{}:{}", name, header->line), "a quote is not closed",
                            "end it with \""));
  }
  table.columns = std::move(header->fields);
  std::set<std::string_view> seen;
  for (const std::string& column : table.columns) {
    if (seen.insert(column).second) continue;
    return fail(usage_error(fmt::format("{}:{}", name, header->line),
                            fmt::format("two columns are called '{}'", column)));
  }
  while (auto record = reader.next()) table.records.push_back(*std::move(record));
  return table;
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
