// Tokenizers against tokens that HuggingFace's tokenizers and tiktoken made: see
// tests/tokenizers/make_vectors.py.
#include "train/data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <sstream>

#include "train/data/load_tokenizer.h"

namespace assay::data {
namespace {

using TokenizerPtr = std::unique_ptr<const Tokenizer>;

std::string vector_file(const std::string& name) {
  return std::string(ASSAY_TOKENIZER_VECTORS) + "/" + name;
}

// "gpt2.json", "small.tiktoken:cl100k"
const Tokenizer& tokenizer_named(const std::string& name) {
  static std::map<std::string, TokenizerPtr> loaded;
  TokenizerPtr& tokenizer = loaded[name];
  if (tokenizer) return *tokenizer;
  TokenizerChoice choice{.source = vector_file(name.substr(0, name.find(':')))};
  if (name.find(':') != std::string::npos) {
    choice.pattern = name.substr(name.find(':') + 1);
    choice.special = {"<|endoftext|>=423", "<|end|>=424"};
  }
  auto result = load_tokenizer(choice);
  EXPECT_TRUE(result) << result.error().line();
  tokenizer = *std::move(result);
  return *tokenizer;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

struct Vector {
  std::string tokenizer;
  std::string text;
  std::vector<TokenId> tokens;
};

const std::vector<Vector>& vectors() {
  static const std::vector<Vector> all = [] {
    std::vector<Vector> read;
    std::ifstream file(vector_file("vectors.txt"));
    for (std::string name, hex, list; file >> name >> hex >> list;) {
      Vector one{name, from_hex(hex), {}};
      std::istringstream ids(list);
      for (std::string id; list != "-" && std::getline(ids, id, ',');) {
        one.tokens.push_back(static_cast<TokenId>(std::stoul(id)));
      }
      read.push_back(std::move(one));
    }
    return read;
  }();
  return all;
}

TEST(Tokenizer, MakesTheTokensThatOthersMake) {
  ASSERT_GT(vectors().size(), 900U);
  for (const Vector& one : vectors()) {
    const auto tokens = tokenizer_named(one.tokenizer).encode(one.text);
    ASSERT_TRUE(tokens) << tokens.error().line();
    EXPECT_EQ(*tokens, one.tokens) << one.tokenizer << ": " << ::testing::PrintToString(one.text);
  }
}

TEST(Tokenizer, GivesBackEveryText) {
  for (const Vector& one : vectors()) {
    EXPECT_EQ(tokenizer_named(one.tokenizer).decode(one.tokens), one.text);
  }
}

// All texts as one document, so that words, characters and special tokens cross piece boundaries.
TEST(Tokenizer, DoesNotCareHowADocumentIsCut) {
  for (const char* name :
       {"gpt2.json", "llama3.json", "small.tiktoken:cl100k", "small.tiktoken:o200k"}) {
    const Tokenizer& tokenizer = tokenizer_named(name);
    std::string document;
    for (const Vector& one : vectors()) {
      if (one.tokenizer == name) document += one.text;
    }
    const auto whole = tokenizer.encode(document);
    const auto encoder = tokenizer.encoder();
    for (const std::size_t size : {1U, 2U, 3U, 5U, 7U, 64U, 1000U}) {
      std::vector<TokenId> tokens;
      for (std::size_t at = 0; at < document.size(); at += size) {
        ASSERT_TRUE(encoder->feed(std::string_view(document).substr(at, size), tokens));
      }
      ASSERT_TRUE(encoder->finish(tokens));
      EXPECT_EQ(tokens, *whole) << name << " in parts of " << size;
    }
  }
}

RC_GTEST_PROP(Tokenizer, GivesBackAnyBytesInAnyParts, (std::string text)) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 9);
  for (const char* name : {"gpt2.json", "llama3.json", "small.tiktoken:gpt2"}) {
    const auto encoder = tokenizer_named(name).encoder();
    std::vector<TokenId> tokens;
    for (std::size_t at = 0; at < text.size(); at += size) {
      RC_ASSERT(encoder->feed(std::string_view(text).substr(at, size), tokens).has_value());
    }
    RC_ASSERT(encoder->finish(tokens).has_value());
    RC_ASSERT(*tokenizer_named(name).encode(text) == tokens);
    RC_ASSERT(*tokenizer_named(name).decode(tokens) == text);
  }
}

TEST(Tokenizer, BytesAreTheirOwnTokens) {
  const auto tokenizer = load_tokenizer({});
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ((*tokenizer)->vocabulary(), 256U);
  const std::string text("\0a\xff", 3);
  EXPECT_EQ((*tokenizer)->encode(text), (std::vector<TokenId>{0, 'a', 255}));
  EXPECT_EQ((*tokenizer)->decode(std::vector<TokenId>{0, 'a', 255}), text);
  EXPECT_FALSE((*tokenizer)->decode(std::vector<TokenId>{256}));
}

TEST(Tokenizer, VocabularyIsOneMoreThanTheLargestId) {
  EXPECT_EQ(tokenizer_named("small.tiktoken:gpt2").vocabulary(), 425U);
  EXPECT_FALSE(tokenizer_named("gpt2.json").decode(std::vector<TokenId>{100'000}));
}

TEST(Tokenizer, AddedTokensCanBeText) {
  const auto tokenizer =
      load_tokenizer({.source = vector_file("gpt2.json"), .added_as_text = true});
  ASSERT_TRUE(tokenizer);
  const auto tokens = (*tokenizer)->encode("<|end|>");
  EXPECT_GT(tokens->size(), 1U);
  EXPECT_EQ((*tokenizer)->decode(*tokens), "<|end|>");
  // They stay text wherever the definition is copied: it is a different tokenizer from the file's.
  const auto again = tokenizer_of((*tokenizer)->definition(), "x");
  ASSERT_TRUE(again);
  EXPECT_EQ(*(*again)->encode("<|end|>"), *tokens);
  EXPECT_EQ((*again)->definition(), (*tokenizer)->definition());
  EXPECT_NE((*again)->definition(), tokenizer_named("gpt2.json").definition());
}

// Megabytes of a single word, in parts, take linear time.
TEST(Tokenizer, WordsWithoutEndAreQuick) {
  const Tokenizer& tokenizer = tokenizer_named("llama3.json");
  const auto encoder = tokenizer.encoder();
  std::vector<TokenId> tokens;
  const std::string part(1000, 'e');
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(encoder->feed(part, tokens));
  ASSERT_TRUE(encoder->finish(tokens));
  EXPECT_EQ(tokenizer.decode(tokens)->size(), 500'000U);
}

}  // namespace
}  // namespace assay::data
