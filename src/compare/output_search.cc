#include "compare/output_search.h"

#include <fmt/format.h>

#include <algorithm>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text.h"

namespace assay::compare {
namespace {

// Of one attempt at one position: some milliseconds. Usual patterns need a few dozen.
constexpr std::uint32_t kMostBacktracks = 200'000;
constexpr std::uint32_t kMostHeapKib = 64 << 10;
// Start positions tried between two checks of the clock.
constexpr std::size_t kPositionsAtOnce = 64;
constexpr std::uint32_t kPatternOptions =
    PCRE2_USE_OFFSET_LIMIT | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UTF;

constexpr std::string_view kLineEnds = "\r\n";
constexpr std::string_view kBlanks = " \t";
// Deeper nesting is not output that a program prints for others, and scanning for the end from each
// bracket would be quadratic.
constexpr std::size_t kDeepest = 64;

// The offset after the bracket that closes the one at `begin`; npos if there is none.
std::size_t end_of_document(std::string_view text, std::size_t begin) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      if (c == '\n') return std::string_view::npos;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) return std::string_view::npos;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

std::size_t line_end(std::string_view text, std::size_t from) {
  return std::min(text.find_first_of(kLineEnds, from), text.size());
}

}  // namespace

base::Result<void> SearchLimit::check() const {
  if (interrupted_ && interrupted_()) {
    return base::fail(base::unfit_error("", "was interrupted while its output was being searched"));
  }
  if (watch_.elapsed() < limit_) return {};
  return base::fail(base::unfit_error(
      "", fmt::format("searching its output took more than {}", base::to_text(limit_)),
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
    return base::fail(base::usage_error("", fmt::format("'{}' is not a regular expression", text),
                                        "groups are (…), a digit is [0-9]"));
  }
  std::uint32_t groups = 0;
  pcre2_pattern_info(compiled, PCRE2_INFO_CAPTURECOUNT, &groups);
  return Pattern(std::make_shared<const Code>(compiled), groups);
}

base::Result<std::optional<PatternMatch>> Pattern::search(std::string_view line, std::size_t from,
                                                          const SearchLimit& limit) const {
  // PCRE2 rejects a null subject, which an empty string_view may have.
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(line.empty() ? "" : line.data());
  for (std::size_t first = from; first <= line.size(); first += kPositionsAtOnce) {
    ASSAY_TRY_VOID(limit.check());
    pcre2_set_offset_limit(code_->context, std::min(first + kPositionsAtOnce - 1, line.size()));
    const int found =
        pcre2_match(code_->code, subject, line.size(), first, 0, code_->match, code_->context);
    if (found == PCRE2_ERROR_NOMATCH) continue;
    if (found < 0) {
      return base::fail(base::unfit_error(
          "", fmt::format("a line of {} characters has too many ways to match", line.size()),
          "simplify the pattern: avoid nested repetition"));
    }
    const PCRE2_SIZE* places = pcre2_get_ovector_pointer(code_->match);
    PatternMatch match{.end = places[1]};
    for (std::size_t group = 0; group <= groups_; ++group) {
      const PCRE2_SIZE begin = places[2 * group];
      const bool matched = static_cast<int>(group) < found && begin != PCRE2_UNSET;
      match.groups.push_back(matched ? line.substr(begin, places[2 * group + 1] - begin)
                                     : std::string_view());
    }
    return std::optional(std::move(match));
  }
  return std::optional<PatternMatch>();
}

base::Result<void> each_document(std::string_view text, const SearchLimit& limit,
                                 const std::function<void(const base::Json&)>& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find_first_not_of(kBlanks, at), text.size());
    std::size_t next = line_end(text, begin);
    if (begin < text.size() && (text[begin] == '{' || text[begin] == '[')) {
      ASSAY_TRY_VOID(limit.check());
      const std::size_t end = end_of_document(text, begin);
      const bool ends_its_line =
          end != std::string_view::npos &&
          std::min(text.find_first_not_of(kBlanks, end), text.size()) == line_end(text, end);
      if (ends_its_line) {
        const base::Json document =
            base::Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                              text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
        if (!document.is_discarded()) {
          visit(document);
          next = line_end(text, end);
        }
      }
    }
    at = next + 1;
  }
  return {};
}

}  // namespace assay::compare
