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
#include <vector>

#include "base/result.h"

namespace assay::data {

using TokenId = std::uint32_t;

// One document at a time; not thread-safe. The tokenizer must outlive it.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the tokens that later text cannot change.
  virtual base::Result<void> feed(std::string_view text, std::vector<TokenId>& tokens) = 0;
  virtual base::Result<void> finish(std::vector<TokenId>& tokens) = 0;
};

// Immutable and thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // The largest id plus one.
  [[nodiscard]] virtual std::uint64_t vocabulary() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Encoder> encoder() const = 0;
  // Fails on an unknown id.
  [[nodiscard]] virtual base::Result<std::string> decode(std::span<const TokenId> tokens) const = 0;

  // Encodes a whole document.
  [[nodiscard]] base::Result<std::vector<TokenId>> encode(std::string_view text) const;
};

// Each byte is its own token.
std::unique_ptr<const Tokenizer> byte_tokenizer();

}  // namespace assay::data
