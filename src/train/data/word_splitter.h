// WordSplitter: splits text into words with a regular expression (PCRE2), before byte-pair merging,
// which never crosses words. Text may arrive in parts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::data {

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
  // word too. `text` is valid UTF-8. Returns 0 if `more` text may follow and change the answer.
  base::Result<std::size_t> word_end(Scratch& scratch, std::string_view text, std::size_t from,
                                     bool more) const;

 private:
  struct Code;
  explicit WordSplitter(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  std::shared_ptr<const Code> code_;
};

}  // namespace assay::data
