#include "train/data/documents/json_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"

namespace assay::data {
namespace {

// Parses event by event: building a tree for every line would dominate the time.
class LineEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  LineEvents(const std::string& column, std::string& text) : column_(column), text_(text) {}

  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] bool is_null() const { return is_null_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Keys of the object, for an error that names them.
  [[nodiscard]] std::string keys() const { return fmt::format("{}", fmt::join(keys_, ", ")); }

  bool null() override {
    if (depth_ != 1 || !at_column_) return scalar("null");
    is_null_ = true;
    return once();
  }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(number_integer_t) override { return scalar("a number"); }
  bool number_unsigned(number_unsigned_t) override { return scalar("a number"); }
  bool number_float(number_float_t, const string_t&) override { return scalar("a number"); }
  bool binary(binary_t&) override { return scalar("binary data"); }
  bool string(string_t& value) override {
    if (depth_ == 0) return refuse("is not an object");
    if (!at_column_ || depth_ != 1) return true;
    text_.swap(value);
    return once();
  }
  bool key(string_t& value) override {
    if (depth_ != 1) return true;
    at_column_ = value == column_;
    constexpr std::size_t kMostKeys = 20;
    if (!at_column_ && keys_.size() < kMostKeys) keys_.push_back(value);
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ == 1 && at_column_) return scalar("an object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0) return refuse("is not an object");
    if (depth_ == 1 && at_column_) return scalar("a list");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while …"
    std::string_view what = error.what();
    if (const auto colon = what.find(": "); colon != std::string_view::npos) {
      what.remove_prefix(colon + 2);
    }
    problem_ = fmt::format("is not valid JSON: at byte {}: {}", position, what);
    return false;
  }

 private:
  // The column's value.
  bool once() {
    if (found_) return refuse(fmt::format("has '{}' twice", column_));
    found_ = true;
    return true;
  }
  bool refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool scalar(const char* kind) {
    if (depth_ == 0) return refuse("is not an object");
    if (depth_ == 1 && at_column_) {
      return refuse(fmt::format("'{}' is {}, not a string", column_, kind));
    }
    return true;
  }

  const std::string& column_;
  std::string& text_;
  std::vector<std::string> keys_;
  std::size_t depth_ = 0;
  bool at_column_ = false;
  bool found_ = false;
  bool is_null_ = false;
  std::string problem_;
};

}  // namespace

base::Result<bool> document_of_line(std::string_view line, const std::string& column,
                                    std::string& text) {
  constexpr const char* kSkip = "--skip-bad-rows skips such rows";
  LineEvents events(column, text);
  if (!nlohmann::json::sax_parse(line.begin(), line.end(), &events)) {
    return base::fail(base::usage_error({}, events.problem(), kSkip));
  }
  if (!events.found()) {
    return base::fail(
        base::usage_error({}, fmt::format("has no '{}'", column),
                          fmt::format("--column names one of: {}; {}", events.keys(), kSkip)));
  }
  return !events.is_null();
}

RowsWithout& RowsWithout::operator+=(const RowsWithout& later) {
  null += later.null;
  bad += later.bad;
  if (!first_bad) first_bad = later.first_bad;
  return *this;
}

std::string RowsWithout::text() const {
  const auto counted = [](std::uint64_t count, const char* noun) {
    return base::counted(static_cast<std::int64_t>(count), noun);
  };
  std::string text;
  if (null > 0) text += fmt::format("; {} without text", counted(null, "row"));
  if (bad > 0) text += fmt::format("; {} skipped", counted(bad, "bad row"));
  if (first_bad)
    text += ", the first is " + base::printable(first_bad->where + ": " + first_bad->what);
  return text;
}

base::Result<void> for_each_document(
    const JsonLines& lines, RowsWithout& without,
    const std::function<base::Result<void>(const std::string&)>& take) {
  std::string_view text = lines.text;
  std::string document;
  for (std::uint64_t row = lines.rows_before + 1; !text.empty(); ++row) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = base::trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    auto parsed = document_of_line(line, lines.column, document);
    if (!parsed) {
      parsed.error().where = fmt::format("{}: row {}", lines.path, row);
      if (!lines.skip_bad) return base::fail(parsed.error());
      without += {.bad = 1, .first_bad = parsed.error()};
    } else if (!*parsed) {
      ++without.null;
    } else {
      ASSAY_TRY_VOID(take(document));
    }
  }
  return {};
}

}  // namespace assay::data
