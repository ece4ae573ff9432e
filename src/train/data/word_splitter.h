// WordSplitter: cuts text into words with a regular expression, ahead of byte-pair merging, which
// never crosses them. Wraps PCRE2; text may arrive in parts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::data {

// The patterns that tiktoken vocabularies are used with, by name: gpt2, cl100k, o200k, llama3.
base::Result<std::string> split_pattern(std::string_view name);
std::vector<std::string> split_pattern_names();

class WordSplitter {
 public:
  // Refused: patterns that look behind, or at where the text begins. Their words would depend on
  // how a document was cut. Errors name `where`.
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

  // Where the word that starts at `from`, which is before the end of `text`, ends. What stands
  // between matches is a word as well. `text` is valid UTF-8; 0 when `more` text may follow and
  // change the answer.
  base::Result<std::size_t> word_end(Scratch& scratch, std::string_view text, std::size_t from,
                                     bool more) const;

 private:
  struct Code;
  explicit WordSplitter(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  std::shared_ptr<const Code> code_;
};

}  // namespace assay::data
