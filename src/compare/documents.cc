#include "compare/documents.h"

#include <algorithm>

namespace assay::compare {
namespace {

constexpr std::string_view kLineEnds = "\r\n";
constexpr std::string_view kBlanks = " \t";
// What opens more brackets is no document that somebody would print, and to search its end from
// each of them would take its length so many times.
constexpr std::size_t kDeepest = 64;

// Just after the bracket that closes the one at `begin`; npos where there is none.
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

base::Result<void> each_document(std::string_view text, const Patience& patience,
                                 const std::function<void(const base::Json&)>& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find_first_not_of(kBlanks, at), text.size());
    std::size_t next = line_end(text, begin);
    if (begin < text.size() && (text[begin] == '{' || text[begin] == '[')) {
      ASSAY_TRY_VOID(patience.check());
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
