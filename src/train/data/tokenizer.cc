#include "train/data/tokenizer.h"

#include <fmt/format.h>

namespace assay::data {
namespace {

class ByteEncoder : public Encoder {
 public:
  base::Result<void> feed(std::string_view text, std::vector<TokenId>& tokens) override {
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return {};
  }
  base::Result<void> finish(std::vector<TokenId>& /*tokens*/) override { return {}; }
};

class ByteTokenizer : public Tokenizer {
 public:
  [[nodiscard]] std::uint64_t vocabulary() const override { return 256; }
  [[nodiscard]] std::unique_ptr<Encoder> encoder() const override {
    return std::make_unique<ByteEncoder>();
  }
  [[nodiscard]] base::Result<std::string> decode(std::span<const TokenId> tokens) const override {
    std::string text;
    for (const TokenId token : tokens) {
      if (token > 255) return base::fail(base::failed_error({}, fmt::format("no token {}", token)));
      text += static_cast<char>(token);
    }
    return text;
  }
};

}  // namespace

base::Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text) const {
  std::vector<TokenId> tokens;
  const auto document = encoder();
  ASSAY_TRY_VOID(document->feed(text, tokens));
  ASSAY_TRY_VOID(document->finish(tokens));
  return tokens;
}

std::unique_ptr<const Tokenizer> byte_tokenizer() {
  return std::make_unique<ByteTokenizer>();
}

}  // namespace assay::data
