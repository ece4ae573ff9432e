// A small scanner for what people print as numbers.
#include "base/numeric_cell.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/text.h"

namespace assay::base {
namespace {

// Units are short words. Past these lengths a cell that starts with a digit is an id or a sentence.
constexpr std::size_t kLongestJoinedUnit = 8;  // "TFLOP/s", and "µs" takes three bytes
constexpr std::size_t kLongestSpacedUnit = 16;

// Takes the first of `choices` that `text` starts with, if any.
template <std::size_t N>
bool take(std::string_view& text, const std::array<std::string_view, N>& choices) {
  for (const std::string_view choice : choices) {
    if (!text.starts_with(choice)) continue;
    text.remove_prefix(choice.size());
    return true;
  }
  return false;
}

std::size_t take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(count);
  return count;
}

// 8030, 8,030 or 8,030,261: commas only where they group thousands, so that "1,2" is a list.
bool take_whole(std::string_view& text) {
  const std::size_t lead = take_digits(text);
  if (lead == 0) return false;
  while (text.starts_with(',')) {
    text.remove_prefix(1);
    if (lead > 3 || take_digits(text) != 3) return false;
  }
  return true;
}

bool take_number(std::string_view& text) {
  constexpr std::array<std::string_view, 2> kNotFinite = {"inf", "nan"};
  if (take(text, kNotFinite)) return text.empty() || text.front() == ' ';
  if (!take_whole(text)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (take_digits(text) == 0) return false;
  }
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E')) {
    std::string_view exponent = text.substr(1);
    if (exponent[0] == '+' || exponent[0] == '-') exponent.remove_prefix(1);
    if (take_digits(exponent) > 0) text = exponent;
  }
  return true;
}

// One word of letters, slashes, percent and non-ASCII signs (µ, ×, °). A digit in it ("8xH100",
// "12ab34") or a second word ("7 of 8") makes the cell text.
bool is_unit(std::string_view text) {
  const bool spaced = text.starts_with(' ');
  if (spaced) text.remove_prefix(1);
  if (text.empty()) return !spaced;
  if (text.size() > (spaced ? kLongestSpacedUnit : kLongestJoinedUnit)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool non_ascii = static_cast<unsigned char>(c) >= 0x80;
    return letter || non_ascii || c == '/' || c == '%';
  });
}

}  // namespace

CellKind cell_kind(std::string_view cell) {
  constexpr std::array<std::string_view, 6> kNothing = {"", "—", "–", "-", "n/a", "?"};
  constexpr std::array<std::string_view, 7> kRelations = {"~", "≈", "<", ">", "≤", "≥", "±"};
  constexpr std::array<std::string_view, 3> kSigns = {"+", "-", "−"};
  constexpr std::array<std::string_view, 4> kCurrencies = {"$", "€", "£", "¥"};

  std::string_view rest = trim(cell);
  if (std::find(kNothing.begin(), kNothing.end(), rest) != kNothing.end()) {
    return CellKind::kNeutral;
  }
  if (take(rest, kRelations)) rest = trim(rest);
  take(rest, kSigns);
  take(rest, kCurrencies);
  return take_number(rest) && is_unit(rest) ? CellKind::kNumber : CellKind::kText;
}

}  // namespace assay::base
