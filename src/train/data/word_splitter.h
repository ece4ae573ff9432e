// WordSplitter: splits text into words with a regular expression (PCRE2), before byte-pair merging,
// which never crosses words. Text may arrive in parts. Patterns may be in the dialects that
// vocabularies use (Oniguruma, Rust); those of well-known vocabularies are found by name.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::data {

// The patterns of well-known tiktoken vocabularies, by name: gpt2, cl100k, o200k, llama3.
base::Result<std::string> split_pattern(std::string_view name);
std::vector<std::string> split_pattern_names();

class WordSplitter {
 public:
  // Refuses lookbehind and anchors to the start of the text: words would depend on how a document
  // was divided. Errors name `where`.
  static base::Result<WordSplitter> compile(const std::string& pattern, const std::string& where);

  // Memory for matching; one per thread.
  class Scratch {
   public:
    Scratch();
    Scratch(Scratch&&) noexcept;
    ~Scratch();

   private:
    friend class WordSplitter;
    struct Memory;
    std::unique_ptr<Memory> memory_;
  };

  // The end of the word that starts at `from` (before the end of `text`). Text between matches is a
  // word too. `text` is valid UTF-8 (utf8_run()). Returns 0 if `more` text may follow and change
  // the answer.
  base::Result<std::size_t> word_end(Scratch& scratch, std::string_view text, std::size_t from,
                                     bool more) const;

 private:
  struct Code;
  explicit WordSplitter(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  std::shared_ptr<const Code> code_;
};

// The length of the valid UTF-8 at the start of a text. Invalid bytes become single-byte words.
struct Utf8Run {
  std::size_t size;  // bytes of valid UTF-8 from the start
  bool cut;          // the rest is an incomplete character at the end of the text
};

Utf8Run utf8_run(std::string_view text);

}  // namespace assay::data
