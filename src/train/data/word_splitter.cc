#include "train/data/word_splitter.h"

#include <fmt/format.h>

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "train/data/split_pattern.h"

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

}  // namespace assay::data
