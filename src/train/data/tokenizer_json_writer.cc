#include "train/data/tokenizer_json_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "train/data/byte_spelling.h"
#include "train/data/split_pattern.h"

namespace assay::data {
namespace {

// A JSON string. Only the content of an added token given by the user can be invalid UTF-8.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string added_text(const BpeVocabulary& vocabulary, const std::vector<AddedToken>& more) {
  std::vector<AddedToken> added = vocabulary.added;
  added.insert(added.end(), more.begin(), more.end());
  std::ranges::sort(added, {},
                    [](const AddedToken& token) { return std::pair(token.second, token.first); });
  std::string text;
  for (const auto& [content, id] : added) {
    text += fmt::format(
        R"({}{{"id":{},"content":{},"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true{}}})",
        text.empty() ? "" : ",", id, quoted(content),
        vocabulary.added_as_text ? R"(,"as_text":true)" : "");
  }
  return text;
}

std::string pre_tokenizer_text(const std::string& pattern) {
  const auto byte_level = [](bool with_pattern) {
    return fmt::format(
        R"({{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":{}}})",
        with_pattern);
  };
  if (pattern.empty()) return byte_level(false);
  if (pattern == *split_pattern("gpt2")) return byte_level(true);
  return fmt::format(
      R"({{"type":"Sequence","pretokenizers":[{{"type":"Split","pattern":{{"Regex":{}}},"behavior":"Isolated","invert":false}},{}]}})",
      quoted(pattern), byte_level(false));
}

// Tokens that text can produce are spelled in the byte alphabet; others are added tokens, or were
// never reachable and keep their spelling.
std::string vocab_text(const BpeVocabulary& vocabulary) {
  std::string text;
  for (TokenId id = 0; id < vocabulary.spellings.size(); ++id) {
    const auto& bytes = vocabulary.spellings[id];
    if (!bytes) continue;
    const auto word = vocabulary.words.find(*bytes);
    const bool spelled = word != vocabulary.words.end() && word->second == id;
    const auto is_this = [&](const AddedToken& token) { return token.second == id; };
    if (!spelled && std::ranges::any_of(vocabulary.added, is_this)) continue;
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",",
                        quoted(spelled ? spelling_of_bytes(*bytes) : *bytes), id);
  }
  return text;
}

std::string merges_text(const BpeVocabulary& vocabulary) {
  std::string text;
  const auto spelled = [&](TokenId id) {
    return quoted(spelling_of_bytes(vocabulary.spellings[id].value_or("")));
  };
  for (const PairTable::Pair& pair : vocabulary.pairs.sorted()) {
    text +=
        fmt::format("{}[{},{}]", text.empty() ? "" : ",", spelled(pair.left), spelled(pair.right));
  }
  return text;
}

}  // namespace

std::string tokenizer_json_text(const BpeVocabulary& vocabulary, const std::string& pattern,
                                const std::vector<AddedToken>& more) {
  std::string text = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)";
  text += added_text(vocabulary, more);
  text += R"(],"normalizer":null,"pre_tokenizer":)" + pre_tokenizer_text(pattern);
  text += R"(,"post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,)"
          R"("trim_offsets":true,"use_regex":true},"model":{"type":"BPE","dropout":null,)"
          R"("unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
          R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":)";
  text += vocabulary.whole_words_first ? "true" : "false";
  text += R"(,"vocab":{)" + vocab_text(vocabulary);
  text += R"(},"merges":[)" + merges_text(vocabulary) + "]}}\n";
  return text;
}

}  // namespace assay::data
