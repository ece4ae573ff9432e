// A lexer of just enough TOML to tell dots between names from dots in strings and comments. It must
// agree with toml++ on text that is valid so far; toml++ reads no further than the first mistake.
#include "spec/nesting.h"

#include <algorithm>

namespace assay::spec {
namespace {

class NameLexer {
 public:
  explicit NameLexer(std::string_view text) : text_(text) {}

  int line_of_deep_name() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (c == '.' && ++dots_ >= kMaxNameParts) return line_;
      // What ends a name. Anything else is part of one, is a space, or is a mistake.
      if (std::string_view("\n=,{}[]").find(c) != std::string_view::npos) dots_ = 0;
      if (c == '\n') ++line_;
      ++at_;
    }
    return 0;
  }

 private:
  // How many of the same quotes stand here, as far as it matters: one or two may come right before
  // the three that end a multi-line string.
  [[nodiscard]] std::size_t quotes_here(char quote) const {
    const std::string_view here = text_.substr(at_, 5);
    return std::min(here.find_first_not_of(quote), here.size());
  }

  void skip_string(char quote) {
    const bool multi_line = quotes_here(quote) >= 3;
    at_ += multi_line ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' && !multi_line) return;  // a mistake; the line ends all the same
      if (c == quote) {
        const std::size_t quotes = multi_line ? quotes_here(quote) : 1;
        at_ += quotes;
        if (!multi_line || quotes >= 3) return;
        continue;
      }
      if (c == '\\' && quote == '"' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      if (c == '\n') ++line_;
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int dots_ = 0;
};

}  // namespace

int line_of_deep_name(std::string_view toml) {
  return NameLexer(toml).line_of_deep_name();
}

}  // namespace assay::spec
