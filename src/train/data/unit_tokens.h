// Tokenizes units of documents (documents/unit_reader.h) independently of each other, and joins
// their tokens into those of whole documents.
//
// If a unit begins in the middle of a text, its first words may be wrong, because the text may have
// been cut inside a word. But encoding has no memory between words: as soon as the words of the
// preceding text, continued into the unit, end where a word of the unit ends, everything after that
// is right. The joiner finds that position, usually at the first word, and otherwise encodes the
// unit again. So several threads encode a document of any size to the same tokens as one thread
// would.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/data/documents/json_line.h"
#include "train/data/documents/unit_reader.h"
#include "train/data/shard_writer.h"
#include "train/data/tokenizer.h"

namespace assay::data {

// Rules applied to each document.
struct DocumentRules {
  std::string column = "text";      // for JSON lines
  std::optional<TokenId> bos = {};  // inserted before each document
  std::optional<TokenId> eos = {};  // inserted after each document
  bool skip_bad_rows = false;       // count them instead of failing
};

struct UnitTokens {
  TextUnit unit;
  std::vector<TokenId> tokens;
  std::vector<std::size_t> starts;  // indices of tokens at which documents begin
  std::vector<WordEnd> head;        // ends of the first words, if the unit continues a text
  std::string rest;                 // text not encoded yet, if the text continues after the unit
  std::uint64_t documents = 0;      // documents that begin in the unit
  std::uint64_t text_bytes = 0;     // total size of the documents
  RowsWithout rows_without = {};
  std::optional<base::Error> error = {};
};

// `path` names the file in errors.
UnitTokens tokens_of_unit(Encoder& encoder, const DocumentRules& rules, DocumentFormat format,
                          const std::string& path, TextUnit unit);

// Appends units to a shard, in order.
class UnitJoiner {
 public:
  UnitJoiner(const Tokenizer& tokenizer, const DocumentRules& rules)
      : join_(tokenizer.encoder()), eos_(rules.eos) {}

  base::Result<void> add(UnitTokens made, ShardWriter& shard);
  // The end of what has been written to the shard, from which reading can be resumed.
  [[nodiscard]] ReadPosition position() const { return position_; }
  // Bytes of added text after that position.
  [[nodiscard]] std::uint64_t pending() const { return position_.inside ? join_->pending() : 0; }

 private:
  base::Result<void> add_continued(const UnitTokens& made, ShardWriter& shard);
  base::Result<void> encode_again(const UnitTokens& made, std::size_t from, ShardWriter& shard);

  std::unique_ptr<Encoder> join_;  // encodes text that crosses units
  std::optional<TokenId> eos_;
  std::uint64_t fed_ = 0;  // bytes given to join_ since it was last empty
  std::vector<TokenId> joined_;
  std::vector<WordEnd> ends_;
  ReadPosition position_;
};

}  // namespace assay::data
