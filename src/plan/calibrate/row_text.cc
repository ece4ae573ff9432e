#include "plan/calibrate/row_text.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace assay::plan {
namespace {

bool is_word(char c) {
  return base::is_digit(c) || base::is_lower(c) || base::is_upper(c) || c == '_';
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

bool ends_word(std::string_view text, std::size_t at) {
  return at >= text.size() || !is_word(text[at]);
}

bool begins_word(std::string_view text, std::size_t at) {
  return at == 0 || !is_word(text[at - 1]);
}

std::size_t digits_from(std::string_view text, std::size_t at) {
  while (at < text.size() && base::is_digit(text[at])) ++at;
  return at;
}

std::size_t blanks_from(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

double number_of(std::string_view digits) {
  double value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// Letters and digits; "use_lora" has the word "lora".
bool is_letter(char c) {
  return is_word(c) && c != '_';
}

bool ends_with_word(std::string_view text, std::string_view word) {
  return text.ends_with(word) &&
         (text.size() == word.size() || !is_letter(text[text.size() - word.size() - 1]));
}

bool is_denied(std::string_view before) {
  const std::size_t blanks = before.size();
  while (!before.empty() && is_blank(before.back())) before.remove_suffix(1);
  if (before.size() == blanks) return false;
  return ends_with_word(before, "no") || ends_with_word(before, "not") ||
         ends_with_word(before, "without");
}

bool is_off(std::string_view behind) {
  if (!behind.starts_with('=')) return false;
  behind.remove_prefix(1);
  for (const std::string_view off : {"false", "no", "off", "none", "0"}) {
    if (behind.starts_with(off) && (behind.size() == off.size() || !is_word(behind[off.size()])))
      return true;
  }
  return false;
}

// Where a match of `piece` that begins at `at` ends; ? is one character or none.
std::optional<std::size_t> piece_end(std::string_view text, std::size_t at,
                                     std::string_view piece) {
  for (std::size_t i = 0; i < piece.size(); ++i) {
    if (piece[i] == '?') {
      const std::string_view rest = piece.substr(i + 1);
      if (const auto end = piece_end(text, at, rest)) return end;
      return at < text.size() ? piece_end(text, at + 1, rest) : std::nullopt;
    }
    if (at >= text.size() || text[at] != piece[i]) return std::nullopt;
    ++at;
  }
  return at;
}

bool consume(std::string_view text, std::size_t& at, std::string_view word) {
  if (text.substr(std::min(at, text.size()), word.size()) != word) return false;
  at += word.size();
  return true;
}

// The end of what follows an expert count, just before the second number.
std::optional<std::size_t> top_end(std::string_view text, std::size_t at) {
  at = blanks_from(text, at);
  if (!consume(text, at, "experts") && !consume(text, at, "e")) return std::nullopt;
  if (!consume(text, at, "-") && !consume(text, at, " ")) return std::nullopt;
  if (!consume(text, at, "top")) return std::nullopt;
  if (!consume(text, at, "-")) consume(text, at, " ");
  return at;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (base::is_upper(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return contains(text, word); });
}

std::optional<std::size_t> stated_at(std::string_view text, std::string_view phrase) {
  for (std::size_t at = text.find(phrase); at != std::string_view::npos;
       at = text.find(phrase, at + 1)) {
    const std::string_view before = text.substr(0, at);
    const std::string_view behind = text.substr(at + phrase.size());
    const bool inside = (!before.empty() && is_letter(before.back())) ||
                        (!behind.empty() && is_letter(behind.front()));
    if (!inside && !is_denied(before) && !is_off(behind)) return at;
  }
  return std::nullopt;
}

bool states(std::string_view text, std::string_view phrase) {
  return stated_at(text, phrase).has_value();
}

bool states_any(std::string_view text, std::initializer_list<std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](std::string_view phrase) { return states(text, phrase); });
}

bool says_yes(std::string_view field) {
  for (const std::string_view yes : {"yes", "true", "on", "1"}) {
    if (field.starts_with(yes) && ends_word(field, yes.size())) return true;
  }
  return false;
}

std::string_view family_of(std::string_view source) {
  const std::size_t first = source.find(' ');
  if (first == std::string_view::npos) return source;
  return source.substr(0, source.find(' ', first + 1));
}

bool contains_like(std::string_view text, std::string_view pattern) {
  std::size_t at = 0;
  while (true) {
    const std::size_t star = std::min(pattern.find('*'), pattern.size());
    const std::string_view piece = pattern.substr(0, star);
    std::optional<std::size_t> end;
    for (; at <= text.size() && !end; ++at) end = piece_end(text, at, piece);
    if (!end) return false;
    if (star == pattern.size()) return true;
    at = *end;
    pattern.remove_prefix(star + 1);
  }
}

std::optional<double> number_after(std::string_view text, std::string_view key, bool word) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (word && !begins_word(text, at)) continue;
    const std::size_t begin = at + key.size();
    const std::size_t end = digits_from(text, begin);
    if (end > begin) return number_of(text.substr(begin, end - begin));
  }
  return std::nullopt;
}

std::optional<double> number_before(std::string_view text, std::string_view unit) {
  for (std::size_t at = text.find(unit); at != std::string_view::npos;
       at = text.find(unit, at + 1)) {
    std::size_t end = at;
    while (end > 0 && is_blank(text[end - 1])) --end;
    std::size_t begin = end;
    while (begin > 0 && base::is_digit(text[begin - 1])) --begin;
    if (begin < end) return number_of(text.substr(begin, end - begin));
  }
  return std::nullopt;
}

std::optional<double> watts_in(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = digits_from(text, begin);
    const std::size_t count = end - begin;
    if ((count == 3 || count == 4) && begins_word(text, begin)) {
      std::size_t unit = end;
      if (unit < text.size() && is_blank(text[unit])) ++unit;
      if (unit < text.size() && text[unit] == 'w' && ends_word(text, unit + 1))
        return number_of(text.substr(begin, count));
    }
    begin = std::max(end, begin + 1);
  }
  return std::nullopt;
}

std::optional<ExpertsText> experts_in(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = digits_from(text, begin);
    if (end > begin) {
      if (const auto second = top_end(text, end)) {
        const std::size_t last = digits_from(text, *second);
        if (last > *second) {
          return ExpertsText{number_of(text.substr(begin, end - begin)),
                             number_of(text.substr(*second, last - *second))};
        }
      }
    }
    begin = std::max(end, begin + 1);
  }
  return std::nullopt;
}

std::optional<double> parameters_in(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t whole = digits_from(text, begin);
    if (whole == begin) {
      ++begin;
      continue;
    }
    std::size_t end = whole;
    if (whole < text.size() && text[whole] == '.') {
      const std::size_t fraction = digits_from(text, whole + 1);
      if (fraction > whole + 1) end = fraction;
    }
    const std::size_t unit = blanks_from(text, end);
    if (unit < text.size() && (text[unit] == 'b' || text[unit] == 'm') &&
        ends_word(text, unit + 1)) {
      return number_of(text.substr(begin, end - begin)) * (text[unit] == 'b' ? 1e9 : 1e6);
    }
    begin = whole;
  }
  return std::nullopt;
}

}  // namespace assay::plan
