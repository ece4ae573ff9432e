#include "train/data/word_splitter.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/suggestion.h"
#include "base/text.h"
#include "base/utf8.h"

namespace assay::data {
namespace {

// JIT-compiled patterns backtrack on this stack; on the machine's they would have 32 KiB.
constexpr std::size_t kFirstStack = std::size_t{64} << 10;
constexpr std::size_t kLargestStack = std::size_t{64} << 20;

std::string pcre2_message(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

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

// Replaces \s and \S by Unicode's White_Space: PCRE2's also match U+180E, which is no longer a
// space. Anchors to the start of the text are refused; errors name `where`.
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

constexpr std::uint64_t kNotAscii = 0x8080808080808080U;

// Whether `tail` is an incomplete character: tries the smallest and largest continuation bytes.
bool is_incomplete_character(std::string_view tail) {
  for (const char filler : {'\x80', '\xbf'}) {
    std::string whole(tail);
    while (whole.size() < 4) {
      whole += filler;
      if (base::first_utf8_char(whole).valid) return true;
    }
  }
  return false;
}

}  // namespace

struct WordSplitter::Code {
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
  pcre2_code* code;
};

struct WordSplitter::Scratch::Memory {
  Memory() {
    // Without it matching uses the machine stack, which is enough for real text.
    if (stack != nullptr) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kFirstStack, kLargestStack, nullptr);
};

WordSplitter::Scratch::Scratch() : memory_(std::make_unique<Memory>()) {}
WordSplitter::Scratch::Scratch(Scratch&&) noexcept = default;
WordSplitter::Scratch::~Scratch() = default;

base::Result<WordSplitter> WordSplitter::compile(const std::string& pattern,
                                                 const std::string& where) {
  ASSAY_TRY(const std::string translated, to_pcre2(pattern, where));
  int error = 0;
  PCRE2_SIZE offset = 0;
  constexpr std::uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                       translated.size(), kOptions, &error, &offset, nullptr);
  if (compiled == nullptr) {
    return base::fail(base::usage_error(
        where, fmt::format("the split pattern is invalid: {}", pcre2_message(error))));
  }
  auto code = std::make_shared<const Code>(compiled);
  std::uint32_t behind = 0;
  pcre2_pattern_info(compiled, PCRE2_INFO_MAXLOOKBEHIND, &behind);
  if (behind > 0) {
    return base::fail(
        base::usage_error(where, "the split pattern uses lookbehind, which is not supported"));
  }
  // If this fails, the interpreter is used: slower, same words.
  pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
  return WordSplitter(std::move(code));
}

base::Result<std::size_t> WordSplitter::word_end(Scratch& scratch, std::string_view text,
                                                 std::size_t from, bool more) const {
  // A hard partial match means that the end of the text was inspected: exactly when more text may
  // change the answer.
  const std::uint32_t options =
      PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | (more ? PCRE2_PARTIAL_HARD : 0U);
  const Scratch::Memory& memory = *scratch.memory_;
  const int outcome = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), from, options, memory.match, memory.context);
  if (outcome == PCRE2_ERROR_PARTIAL) return std::size_t{0};
  if (outcome == PCRE2_ERROR_NOMATCH) return more ? 0 : text.size();
  if (outcome < 0) {
    return base::fail(base::failed_error(
        {}, fmt::format("cannot split the text into words: {}", pcre2_message(outcome)),
        "does it have a word of many megabytes?"));
  }
  const PCRE2_SIZE* found = pcre2_get_ovector_pointer(memory.match);
  return found[0] > from ? found[0] : found[1];
}

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

// ASCII is skipped eight bytes at a time.
Utf8Run utf8_run(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t eight = 0;
    if (text.size() - at >= sizeof(eight)) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      if ((eight & kNotAscii) == 0) {
        at += sizeof(eight);
        continue;
      }
    }
    const base::Utf8Char next = base::first_utf8_char(text.substr(at));
    if (!next.valid) {
      const std::string_view tail = text.substr(at);
      return {at, tail.size() < 4 && is_incomplete_character(tail)};
    }
    at += next.size;
  }
  return {at, false};
}

}  // namespace assay::data
