// The tokens of a unit of documents (documents/unit_reader.h), made apart from all other units, and
// their joining to the tokens of whole documents.
//
// Where a unit begins in the middle of a text, its first words may be wrong: the text may have been
// cut inside a word. But encoding has no memory between words, so once the words of the text
// before, continued into the unit, end where a word of the unit ends, all that follows is right.
// The joiner finds that place, usually at the first word, and otherwise encodes the unit again. So
// a document of any size is encoded by several threads to the tokens that one thread would give it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/data/documents/unit_reader.h"
#include "train/data/shard_writer.h"
#include "train/data/tokenizer.h"

namespace assay::data {

// What is done to each document.
struct DocumentRules {
  std::string column = "text";      // of JSON lines
  std::optional<TokenId> bos = {};  // before it
  std::optional<TokenId> eos = {};  // after it
};

struct UnitTokens {
  TextUnit unit;
  std::vector<TokenId> tokens;
  std::vector<std::size_t> starts;  // indices of tokens at which documents begin
  std::vector<WordEnd> head;        // ends of words at the beginning of a continued text
  std::string rest;                 // of a text that goes on: what was not encoded
  std::uint64_t documents = 0;      // that begin in it
  std::uint64_t text_bytes = 0;     // of documents
  std::optional<base::Error> error = {};
};

// `path` names the file in errors.
UnitTokens tokens_of_unit(Encoder& encoder, const DocumentRules& rules, DocumentFormat format,
                          const std::string& path, TextUnit unit);

// Appends units, in their order, to a shard.
class UnitJoiner {
 public:
  UnitJoiner(const Tokenizer& tokenizer, const DocumentRules& rules)
      : join_(tokenizer.encoder()), eos_(rules.eos) {}

  base::Result<void> add(UnitTokens made, ShardWriter& shard);
  // Where everything that was added ends, and from where reading can go on.
  [[nodiscard]] ReadPosition position() const { return position_; }
  // Bytes of added text that come after it.
  [[nodiscard]] std::uint64_t pending() const { return position_.inside ? join_->pending() : 0; }

 private:
  base::Result<void> add_continued(const UnitTokens& made, ShardWriter& shard);
  base::Result<void> encode_again(const UnitTokens& made, std::size_t from, ShardWriter& shard);

  std::unique_ptr<Encoder> join_;  // has the text of a document between units
  std::optional<TokenId> eos_;
  std::uint64_t fed_ = 0;  // bytes that join_ was given since it was last empty
  std::vector<TokenId> joined_;
  std::vector<WordEnd> ends_;
  ReadPosition position_;
};

}  // namespace assay::data
