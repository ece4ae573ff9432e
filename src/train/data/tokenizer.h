// Tokenizer: text to tokens and back. load_tokenizer.h creates one by name or from a file.
//
//   auto encoder = tokenizer.encoder();
//   encoder->feed(part, tokens);  …      a document in pieces of any size
//   encoder->finish(tokens);             its end; the next document may follow
//
// The tokens depend on the document only, not on the pieces. Any bytes are accepted: bytes that are
// not valid UTF-8 become words of one byte, so decode() returns exactly the input.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace assay::data {

using TokenId = std::uint32_t;

// A boundary between two words: the text after it is encoded independently of the text before it.
struct WordEnd {
  std::uint64_t bytes;  // offset in the document
  std::size_t tokens;   // size of the caller's vector
};

// One document at a time; not thread-safe. The tokenizer must outlive it.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the tokens that can no longer be changed by later text.
  virtual base::Result<void> feed(std::string_view text, std::vector<TokenId>& tokens) = 0;
  virtual base::Result<void> finish(std::vector<TokenId>& tokens) = 0;

  // Ends the document without encoding the pending text, whose tokens are not known yet; returns
  // it.
  virtual std::string abandon() { return {}; }
  // Size of the pending text.
  [[nodiscard]] virtual std::size_t pending() const { return 0; }
  // From now on appends the ends of words to `ends`; null: stops. Not needed for encoders that
  // never have pending text.
  virtual void watch(std::vector<WordEnd>* /*ends*/) {}
};

// A token written literally in text, such as <|endoftext|>.
using AddedToken = std::pair<std::string, TokenId>;

// Immutable and thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // The largest id plus one.
  [[nodiscard]] virtual std::uint64_t vocabulary() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Encoder> encoder() const = 0;
  // Fails on an unknown id.
  [[nodiscard]] virtual base::Result<std::string> decode(std::span<const TokenId> tokens) const = 0;

  [[nodiscard]] virtual const std::vector<AddedToken>& added() const = 0;
  // The tokenizer as a tokenizer.json, always the same text for the same tokenizer: its BLAKE3 is
  // the tokenizer's identity. `more` are further added tokens to include.
  [[nodiscard]] virtual std::string definition(const std::vector<AddedToken>& more = {}) const = 0;

  // Encodes a whole document.
  [[nodiscard]] base::Result<std::vector<TokenId>> encode(std::string_view text) const;
};

// Each byte is its own token. Added tokens are decoded, but not recognised in text.
std::unique_ptr<const Tokenizer> byte_tokenizer(std::vector<AddedToken> added = {});

}  // namespace assay::data
