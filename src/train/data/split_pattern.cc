#include "train/data/split_pattern.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/suggestion.h"
#include "base/text.h"

namespace assay::data {
namespace {

constexpr std::string_view kSpaces = R"(\t-\r\x{85}\p{Z})";

// Fixed by the vocabularies they belong to: other words would give other tokens. Written such that
// PCRE2, Oniguruma (in Hugging Face's library) and Rust's engines interpret them alike: `{1,3}+`
// and `$` do not mean the same in all of them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPatterns = {{
    {"gpt2", R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)"},
    {"cl100k",
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+)"
     R"(|\s++\z|\s*[\r\n]|\s+(?!\S)|\s)"},
    {"o200k", R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
              R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
              R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
              R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
              R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"llama3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"},
}};

}  // namespace

std::vector<std::string> split_pattern_names() {
  std::vector<std::string> names;
  for (const auto& [name, pattern] : kPatterns) names.emplace_back(name);
  return names;
}

base::Result<std::string> split_pattern(std::string_view name) {
  for (const auto& [known, pattern] : kPatterns) {
    if (known == name) return std::string(pattern);
  }
  return base::fail(base::usage_error("--pattern", fmt::format("unknown pattern '{}'", name),
                                      base::suggestion(name, split_pattern_names())));
}

base::Result<std::string> to_pcre2(const std::string& pattern, const std::string& where) {
  std::string translated;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    const bool starts = c == '\\' && (next == 'A' || next == 'G');
    if (!in_class && (starts || c == '^')) {
      return base::fail(base::usage_error(
          where, fmt::format("the split pattern has {} at character {}, which depends on where "
                             "the text begins",
                             starts ? pattern.substr(i, 2) : "^", i + 1)));
    }
    if (c == '\\' && next == 's') {
      translated += in_class ? std::string(kSpaces) : fmt::format("[{}]", kSpaces);
      ++i;
    } else if (c == '\\' && next == 'S' && !in_class) {
      translated += fmt::format("[^{}]", kSpaces);
      ++i;
    } else if (c == '\\' && next != '\0') {
      translated += {c, next};
      ++i;
    } else if (c == '[' && !in_class) {
      in_class = true;
      translated += c;
      // A caret, and a bracket right after it, belong to the opening of a class.
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') translated += pattern[++i];
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') translated += pattern[++i];
    } else if (c == '[') {
      return base::fail(base::usage_error(
          where,
          fmt::format("the split pattern has a nested character class at character {}", i + 1)));
    } else {
      if (c == ']') in_class = false;
      translated += c;
    }
  }
  return translated;
}

}  // namespace assay::data
