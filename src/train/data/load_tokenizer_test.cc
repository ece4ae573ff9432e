// Which vocabulary files are refused, and with which message.
#include "train/data/load_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "train/data/tiktoken.h"
#include "train/data/tokenizer_json.h"

namespace assay::data {
namespace {

using ::testing::HasSubstr;

using JsonNode = nlohmann::json;

const std::string kFolder = ASSAY_TOKENIZER_VECTORS;

JsonNode sample_json() {
  std::ifstream file(kFolder + "/llama3.json");
  return JsonNode::parse(file);
}

std::string refusal(const JsonNode& file) {
  const auto read = read_tokenizer_json(file.dump(), "t.json");
  return read ? "read" : read.error().line();
}

// The sample with one value changed.
std::string refusal_with(const std::string& pointer, const JsonNode& value) {
  JsonNode file = sample_json();
  file[JsonNode::json_pointer(pointer)] = value;
  return refusal(file);
}

TEST(TokenizerJson, ReadsTheSampleItself) {
  EXPECT_EQ(refusal(sample_json()), "read");
  EXPECT_EQ(refusal_with("/post_processor", {{"type", "TemplateProcessing"}}), "read");
}

TEST(TokenizerJson, RefusesByNameWhatItCannotDo) {
  const std::string end = " is not supported; byte-level BPE as in GPT-2 and Llama 3 is";
  EXPECT_EQ(refusal_with("/model/type", "WordPiece"), "t.json: model WordPiece" + end);
  EXPECT_EQ(refusal_with("/normalizer", {{"type", "NFC"}}), "t.json: normalizer NFC" + end);
  EXPECT_EQ(refusal_with("/model/dropout", 0.1), "t.json: model.dropout 0.1" + end);
  EXPECT_EQ(refusal_with("/model/byte_fallback", true), "t.json: model.byte_fallback true" + end);
  EXPECT_EQ(refusal_with("/model/end_of_word_suffix", "</w>"),
            "t.json: model.end_of_word_suffix \"</w>\"" + end);
  EXPECT_EQ(refusal_with("/truncation", {{"max_length", 3}}),
            "t.json: truncation {\"max_length\":3}" + end);
  EXPECT_EQ(refusal_with("/decoder", {{"type", "Metaspace"}}), "t.json: decoder Metaspace" + end);
  EXPECT_EQ(refusal_with("/pre_tokenizer", {{"type", "Whitespace"}}),
            "t.json: pre_tokenizer Whitespace" + end);
  EXPECT_EQ(refusal_with("/pre_tokenizer", nullptr), "t.json: pre_tokenizer null" + end);
  EXPECT_EQ(refusal_with("/pre_tokenizer/pretokenizers/0/behavior", "Removed"),
            "t.json: pre_tokenizer Split behavior \"Removed\"" + end);
  EXPECT_EQ(refusal_with("/pre_tokenizer/pretokenizers/0/type", "Digits"),
            "t.json: pre_tokenizer Digits" + end);
  EXPECT_EQ(refusal_with("/pre_tokenizer/pretokenizers/1/use_regex", true),
            "t.json: pre_tokenizer ByteLevel use_regex true" + end);
  EXPECT_EQ(refusal_with("/pre_tokenizer/pretokenizers/1/add_prefix_space", true),
            "t.json: pre_tokenizer ByteLevel add_prefix_space true" + end);
  EXPECT_EQ(refusal_with("/added_tokens/0/lstrip", true),
            "t.json: added_tokens '<|endoftext|>' lstrip true" + end);
}

TEST(TokenizerJson, RefusesIncompleteFiles) {
  EXPECT_EQ(read_tokenizer_json("{", "t.json").error().line(),
            "t.json: the file is not valid JSON");
  EXPECT_EQ(refusal(JsonNode::object()), "t.json: model.vocab is not an object");
  EXPECT_EQ(refusal_with("/model/merges", "x"), "t.json: model.merges is not a list");
  EXPECT_EQ(refusal_with("/model/merges/3", "x"), "t.json: model.merges[3] is not two tokens");
  EXPECT_EQ(refusal_with("/model/merges/3", {"a", "qq"}),
            "t.json: model.merges[3]: 'qq' is not in the vocabulary");
  EXPECT_EQ(refusal_with("/model/vocab/a", -1), "t.json: model.vocab of 'a' is not an id");
  EXPECT_THAT(refusal_with("/model/vocab/qq", 1), HasSubstr("two tokens have the id 1"));
  JsonNode file = sample_json();
  file["model"]["vocab"].erase("a");
  EXPECT_EQ(
      refusal(file),
      "t.json: model.vocab has no token for the byte 0x61; byte-level vocabularies have one for "
      "each of the 256 bytes");
  EXPECT_THAT(refusal_with("/added_tokens/0/content", ""), HasSubstr("added_tokens is not"));
}

std::string tiktoken_refusal(const std::string& text, std::vector<std::string> special = {}) {
  const auto read = read_tiktoken(text, "v.tiktoken", special);
  return read ? "read" : read.error().line();
}

TEST(Tiktoken, RefusesWhatIsNoVocabulary) {
  EXPECT_THAT(tiktoken_refusal("hello\n"), HasSubstr("v.tiktoken:1: is not a token in base64"));
  EXPECT_THAT(tiktoken_refusal("YQ== 0\nYg== x\n"), HasSubstr("v.tiktoken:2: is not a token"));
  EXPECT_THAT(tiktoken_refusal("YQ=a 0\n"), HasSubstr("is not a token in base64"));
  EXPECT_EQ(tiktoken_refusal("YQ== 0\nYg== 0\n"), "v.tiktoken:2: rank 0 appears twice");
  EXPECT_EQ(tiktoken_refusal("YQ== 0\nYQ== 1\n"), "v.tiktoken:2: this token appears twice");
  EXPECT_THAT(tiktoken_refusal(""), HasSubstr("has no token for the byte 0x00"));
}

TEST(Tiktoken, SpecialTokensAreTextAndId) {
  std::ifstream file(kFolder + "/small.tiktoken");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(tiktoken_refusal(text, {"a=b=500"}), "read");
  EXPECT_THAT(tiktoken_refusal(text, {"x"}), HasSubstr("--special x: is not TEXT=ID"));
  EXPECT_THAT(tiktoken_refusal(text, {"=5"}), HasSubstr("is not TEXT=ID"));
  EXPECT_THAT(tiktoken_refusal(text, {"x=5"}), HasSubstr("5 is the id of another token"));
}

std::string choice_refusal(const TokenizerChoice& choice) {
  const auto loaded = load_tokenizer(choice);
  return loaded ? "read" : loaded.error().line();
}

TEST(LoadTokenizer, WantsThePatternWhereTheFileHasNone) {
  const std::string file = kFolder + "/small.tiktoken";
  EXPECT_THAT(choice_refusal({.source = file}),
              HasSubstr("add --pattern gpt2 or cl100k or o200k or llama3"));
  EXPECT_THAT(choice_refusal({.source = file, .pattern = "cl100"}),
              HasSubstr("unknown pattern 'cl100'; did you mean 'cl100k'?"));
  EXPECT_THAT(choice_refusal({.source = kFolder + "/gpt2.json", .pattern = "gpt2"}),
              HasSubstr("leave --pattern and --special out"));
  EXPECT_THAT(choice_refusal({.source = "bytes", .pattern = "gpt2"}), HasSubstr("neither"));
  EXPECT_THAT(choice_refusal({.source = "nowhere.json"}), HasSubstr("no such file"));
}

TEST(WordSplitter, RefusesLookbehind) {
  const auto refused = [](const std::string& pattern) {
    const auto compiled = WordSplitter::compile(pattern, "t.json");
    return compiled ? "compiled" : compiled.error().line();
  };
  EXPECT_EQ(refused(R"(\p{L}+|[^^\s]|[]a]|\s+)"), "compiled");
  EXPECT_THAT(refused("a|^b"), HasSubstr("has ^ at character 3, which depends on where the text"));
  EXPECT_THAT(refused(R"(\Aa)"), HasSubstr(R"(has \A at character 1)"));
  EXPECT_THAT(refused("(?<=a)b"), HasSubstr("uses lookbehind"));
  EXPECT_THAT(refused("[a&&[b]]"), HasSubstr("a nested character class at character 5"));
  EXPECT_THAT(refused("("), HasSubstr("is invalid: missing closing parenthesis"));
}

// Spaces are those of current Unicode: not U+180E, but U+0085 and U+3000.
TEST(WordSplitter, KnowsSpaces) {
  const auto splitter = WordSplitter::compile(R"(\s+|[^\s]+)", "");
  ASSERT_TRUE(splitter);
  WordSplitter::Scratch scratch;
  EXPECT_EQ(splitter->word_end(scratch, " \u0085\u3000\v\u180e", 0, false), 7U);
  EXPECT_EQ(splitter->word_end(scratch, "\u180ea b", 0, false), 4U);
}

// Text between matches is a word; empty matches are not.
TEST(WordSplitter, LosesNothing) {
  const auto splitter = WordSplitter::compile("b+|x*", "");
  ASSERT_TRUE(splitter);
  WordSplitter::Scratch scratch;
  const std::string text = "aabbcxx-";
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < text.size(); at = ends.back()) {
    ends.push_back(*splitter->word_end(scratch, text, at, false));
  }
  EXPECT_EQ(ends, (std::vector<std::size_t>{2, 4, 5, 7, 8}));
}

}  // namespace
}  // namespace assay::data
