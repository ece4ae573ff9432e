// Pattern: a regular expression, searched for in lines of output that may be anything. Backtracking
// can take longer than the universe has: every attempt has a limit, a search can be interrupted
// between attempts, and all searches of one output together have a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"

namespace assay::compare {

// How long one output is searched. Made when the search begins.
class Patience {
 public:
  explicit Patience(std::function<bool()> stopped = {}, base::Seconds limit = base::Seconds(30))
      : stopped_(std::move(stopped)), limit_(limit) {}

  // An error when it is at its end or somebody interrupts.
  [[nodiscard]] base::Result<void> check() const;

 private:
  std::function<bool()> stopped_;
  base::Seconds limit_;
  base::Stopwatch watch_;
};

struct PatternMatch {
  std::size_t end = 0;
  // The whole match, then its groups; one that took no part is empty.
  std::vector<std::string_view> groups;
};

class Pattern {
 public:
  static base::Result<Pattern> compile(const std::string& text);

  [[nodiscard]] std::size_t groups() const { return groups_; }
  // The first match that begins at `from` or later; "^" is the line's beginning all the same.
  [[nodiscard]] base::Result<std::optional<PatternMatch>> search(std::string_view line,
                                                                 std::size_t from,
                                                                 const Patience& patience) const;

 private:
  struct Code;
  Pattern(std::shared_ptr<const Code> code, std::size_t groups)
      : code_(std::move(code)), groups_(groups) {}

  std::shared_ptr<const Code> code_;
  std::size_t groups_ = 0;
};

}  // namespace assay::compare
