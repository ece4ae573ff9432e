#include "compare/pattern.h"

#include <fmt/format.h>

#include <algorithm>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text.h"

namespace assay::compare {
namespace {

// Of one attempt, at one place of a line: some milliseconds. Patterns for lines of output take a
// few dozen.
constexpr std::uint32_t kMostBacktracks = 200'000;
constexpr std::uint32_t kMostHeapKib = 64 << 10;
// Places that are tried between two looks at the clock.
constexpr std::size_t kPlacesAtOnce = 64;
constexpr std::uint32_t kPatternOptions =
    PCRE2_USE_OFFSET_LIMIT | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UTF;

}  // namespace

base::Result<void> Patience::check() const {
  if (stopped_ && stopped_()) {
    return base::fail(base::unfit_error("", "was interrupted while its output was searched"));
  }
  if (watch_.elapsed() < limit_) return {};
  return base::fail(base::unfit_error(
      "", fmt::format("searching its output takes more than {}", base::to_text(limit_)),
      "simplify the pattern, or print less"));
}

struct Pattern::Code {
  explicit Code(pcre2_code* compiled)
      : code(compiled),
        context(pcre2_match_context_create(nullptr)),
        match(pcre2_match_data_create_from_pattern(compiled, nullptr)) {
    pcre2_set_match_limit(context, kMostBacktracks);
    pcre2_set_heap_limit(context, kMostHeapKib);
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }
  pcre2_code* code;
  pcre2_match_context* context;
  pcre2_match_data* match;
};

base::Result<Pattern> Pattern::compile(const std::string& text) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                       kPatternOptions, &error, &offset, nullptr);
  if (compiled == nullptr) {
    return base::fail(base::usage_error("", fmt::format("'{}' is no regular expression", text),
                                        "groups are (…), a digit is [0-9]"));
  }
  std::uint32_t groups = 0;
  pcre2_pattern_info(compiled, PCRE2_INFO_CAPTURECOUNT, &groups);
  return Pattern(std::make_shared<const Code>(compiled), groups);
}

base::Result<std::optional<PatternMatch>> Pattern::search(std::string_view line, std::size_t from,
                                                          const Patience& patience) const {
  // Without a place to point at, an empty line would be no subject.
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(line.empty() ? "" : line.data());
  for (std::size_t first = from; first <= line.size(); first += kPlacesAtOnce) {
    ASSAY_TRY_VOID(patience.check());
    pcre2_set_offset_limit(code_->context, std::min(first + kPlacesAtOnce - 1, line.size()));
    const int found =
        pcre2_match(code_->code, subject, line.size(), first, 0, code_->match, code_->context);
    if (found == PCRE2_ERROR_NOMATCH) continue;
    if (found < 0) {
      return base::fail(base::unfit_error(
          "", fmt::format("a line of {} characters has too many ways to match", line.size()),
          "simplify the pattern: repeat no group that repeats something itself"));
    }
    const PCRE2_SIZE* places = pcre2_get_ovector_pointer(code_->match);
    PatternMatch match{.end = places[1]};
    for (std::size_t group = 0; group <= groups_; ++group) {
      const PCRE2_SIZE begin = places[2 * group];
      const bool took_part = static_cast<int>(group) < found && begin != PCRE2_UNSET;
      match.groups.push_back(took_part ? line.substr(begin, places[2 * group + 1] - begin)
                                       : std::string_view());
    }
    return std::optional(std::move(match));
  }
  return std::optional<PatternMatch>();
}

}  // namespace assay::compare
