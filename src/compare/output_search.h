// Searches a run's output, which may be any bytes, for numbers: regular expressions in lines, and
// JSON documents among other text. A backtracking pattern can take exponential time, so every match
// attempt is limited, and all searches of one output share a time limit and can be interrupted.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "base/units.h"

namespace assay::compare {

// The time limit for searching one output; starts when constructed.
class SearchLimit {
 public:
  explicit SearchLimit(std::function<bool()> interrupted = {},
                       base::Seconds limit = base::Seconds(30))
      : interrupted_(std::move(interrupted)), limit_(limit) {}

  // Fails when the time is up or the search was interrupted.
  [[nodiscard]] base::Result<void> check() const;

 private:
  std::function<bool()> interrupted_;
  base::Seconds limit_;
  base::Stopwatch watch_;
};

struct PatternMatch {
  std::size_t end = 0;
  // The whole match, then its groups; an unmatched group is empty.
  std::vector<std::string_view> groups;
};

class Pattern {
 public:
  static base::Result<Pattern> compile(const std::string& text);

  [[nodiscard]] std::size_t groups() const { return groups_; }
  // The first match that begins at `from` or later. "^" still matches only the start of the line.
  [[nodiscard]] base::Result<std::optional<PatternMatch>> search(std::string_view line,
                                                                 std::size_t from,
                                                                 const SearchLimit& limit) const;

 private:
  struct Code;
  Pattern(std::shared_ptr<const Code> code, std::size_t groups)
      : code_(std::move(code)), groups_(groups) {}

  std::shared_ptr<const Code> code_;
  std::size_t groups_ = 0;
};

// Calls visit(document), in order, for every outermost JSON object or array that starts at the
// beginning of a line and ends at the end of one; it may span many lines.
base::Result<void> each_document(std::string_view text, const SearchLimit& limit,
                                 const std::function<void(const base::Json&)>& visit);

}  // namespace assay::compare
