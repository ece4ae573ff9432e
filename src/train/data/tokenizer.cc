#include "train/data/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/data/bpe_tokenizer.h"
#include "train/data/tokenizer_json.h"

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
  explicit ByteTokenizer(std::vector<AddedToken> added) : added_(std::move(added)) {
    for (const auto& [text, id] : added_) {
      vocabulary_ = std::max(vocabulary_, std::uint64_t{id} + 1);
    }
  }

  [[nodiscard]] std::uint64_t vocabulary() const override { return vocabulary_; }
  [[nodiscard]] std::unique_ptr<Encoder> encoder() const override {
    return std::make_unique<ByteEncoder>();
  }
  [[nodiscard]] base::Result<std::string> decode(std::span<const TokenId> tokens) const override {
    std::string text;
    for (const TokenId token : tokens) {
      if (token < 256) {
        text += static_cast<char>(token);
        continue;
      }
      const auto found =
          std::ranges::find_if(added_, [&](const AddedToken& a) { return a.second == token; });
      if (found == added_.end()) {
        return base::fail(base::failed_error({}, fmt::format("no token {}", token)));
      }
      text += found->first;
    }
    return text;
  }
  [[nodiscard]] const std::vector<AddedToken>& added() const override { return added_; }
  [[nodiscard]] std::string definition(const std::vector<AddedToken>& more) const override {
    BpeVocabulary vocabulary;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::string text(1, static_cast<char>(byte));
      vocabulary.byte_ids[byte] = byte;
      vocabulary.words.emplace(text, byte);
      vocabulary.spell(byte, text);
    }
    vocabulary.added = added_;
    vocabulary.added.insert(vocabulary.added.end(), more.begin(), more.end());
    return tokenizer_json_text(vocabulary, {});
  }

 private:
  std::vector<AddedToken> added_;
  std::uint64_t vocabulary_ = 256;
};

}  // namespace

base::Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text) const {
  std::vector<TokenId> tokens;
  const auto document = encoder();
  ASSAY_TRY_VOID(document->feed(text, tokens));
  ASSAY_TRY_VOID(document->finish(tokens));
  return tokens;
}

std::unique_ptr<const Tokenizer> byte_tokenizer(std::vector<AddedToken> added) {
  return std::make_unique<ByteTokenizer>(std::move(added));
}

}  // namespace assay::data
