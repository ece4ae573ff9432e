// Tokenizer: text to tokens and back. What it is made from is load_tokenizer.h's business.
//
//   auto encoder = tokenizer.encoder();
//   encoder->feed(part, tokens);  …      a document in any pieces
//   encoder->finish(tokens);             its end; the next document may follow
//
// The tokens depend on the document alone, not on how it was cut into pieces. Any bytes are text:
// those that are no UTF-8 are words of one byte each, so decode() gives back exactly what went in.
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

// One document at a time, by one thread. The tokenizer must outlive it.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the tokens that no later text can change.
  virtual base::Result<void> feed(std::string_view text, std::vector<TokenId>& tokens) = 0;
  virtual base::Result<void> finish(std::vector<TokenId>& tokens) = 0;
};

// Immutable: any number of encoders may use it at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // One more than the largest id.
  [[nodiscard]] virtual std::uint64_t vocabulary() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Encoder> encoder() const = 0;
  // An id that stands for nothing is an error.
  [[nodiscard]] virtual base::Result<std::string> decode(std::span<const TokenId> tokens) const = 0;

  // A whole document.
  [[nodiscard]] base::Result<std::vector<TokenId>> encode(std::string_view text) const;
};

// Each byte is its own token.
std::unique_ptr<const Tokenizer> byte_tokenizer();

}  // namespace assay::data
