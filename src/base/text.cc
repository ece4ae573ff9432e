// Text that is safe to print, and the columns it takes.
#include "base/text.h"

#include <fmt/format.h>
#include <locale.h>
#include <wchar.h>

#include <iterator>

#include "base/utf8.h"

namespace assay::base {
namespace {

// Characters that move the cursor, end the line, or reorder what is shown around them: with a
// right-to-left override a file name can be made to read as another.
bool drives_terminal(char32_t c) {
  const bool c0_or_c1 = c < 0x20 || (c >= 0x7F && c <= 0x9F);
  const bool separator_or_embedding = c >= 0x2028 && c <= 0x202E;  // LS, PS, LRE..RLO
  const bool isolate = c >= 0x2066 && c <= 0x2069;
  return c0_or_c1 || separator_or_embedding || isolate;
}

// wcwidth() knows the widths of all Unicode but uses the thread's locale, which is ASCII in a
// program that never calls setlocale(). This sets a UTF-8 one and restores the old one.
class Utf8Locale {
 public:
  Utf8Locale() : previous_(shared() != locale_t{} ? uselocale(shared()) : locale_t{}) {}
  ~Utf8Locale() {
    if (previous_ != locale_t{}) uselocale(previous_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

  [[nodiscard]] std::size_t width(char32_t c) const {
    if (previous_ == locale_t{}) return 1;
    const int columns = wcwidth(static_cast<wchar_t>(c));
    return columns < 0 ? 1 : static_cast<std::size_t>(columns);  // unassigned: shown as a box
  }

 private:
  static locale_t shared() {
    static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{});
    return locale;
  }
  locale_t previous_;
};

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = first_utf8_char(text);
    const std::string_view bytes = text.substr(0, c.size);
    if (c.valid && !drives_terminal(c.code_point)) {
      shown += bytes;
    } else {
      for (const char byte : bytes) {
        fmt::format_to(std::back_inserter(shown), "\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    text.remove_prefix(c.size);
  }
  return shown;
}

std::size_t display_width(std::string_view text) {
  const Utf8Locale locale;
  std::size_t columns = 0;
  while (!text.empty()) {
    const Utf8Char c = first_utf8_char(text);
    const bool ascii = c.code_point >= 0x20 && c.code_point < 0x7F;
    if (!c.valid || ascii) {
      ++columns;  // a terminal shows one replacement character for what is invalid
    } else if (!drives_terminal(c.code_point)) {
      columns += locale.width(c.code_point);
    }
    text.remove_prefix(c.size);
  }
  return columns;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::string kept;
  while (!text.empty()) {
    const std::string next = kept + std::string(text.substr(0, first_utf8_char(text).size));
    if (display_width(next) + 1 > columns) break;
    text.remove_prefix(next.size() - kept.size());
    kept = next;
  }
  return kept + "…";
}

std::string shortened_middle(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  std::string_view end = text;
  while (display_width(end) > columns / 2) {
    // Far from the goal it drops many characters at once, to stay fast on a megabyte.
    const std::size_t excess = display_width(end) - columns / 2;
    for (std::size_t i = 0; i < (excess + 1) / 2; ++i) end.remove_prefix(first_utf8_char(end).size);
  }
  return shortened(text, columns - columns / 2) + std::string(end);
}

std::string shell_quoted(std::string_view text) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string path_argument(std::string_view path) {
  return shell_quoted(path.starts_with('-') ? "./" + std::string(path) : std::string(path));
}

std::string percent_encoded(std::string_view text, std::string_view kept) {
  std::string out;
  for (const char c : text) {
    if (kept.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace assay::base
