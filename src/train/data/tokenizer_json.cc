#include "train/data/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "train/data/bpe.h"
#include "train/data/word_splitter.h"

namespace assay::data {
namespace {

// Not base::Json, whose objects keep their order and are searched linearly: vocabularies have a
// hundred thousand keys.
using JsonNode = nlohmann::json;

// Null if absent.
const JsonNode& json_member(const JsonNode& object, const char* name) {
  static const JsonNode kAbsent;
  if (!object.is_object()) return kAbsent;
  const auto found = object.find(name);
  return found == object.end() ? kAbsent : *found;
}

tl::unexpected<base::Error> unsupported(const std::string& where, const std::string& what,
                                        const JsonNode& value) {
  const std::string shown = value.is_object() && json_member(value, "type").is_string()
                                ? json_member(value, "type").get<std::string>()
                                : value.dump(-1, ' ', true, JsonNode::error_handler_t::replace);
  return base::fail(base::usage_error(where, fmt::format("{} {} is not supported", what, shown),
                                      "byte-level BPE as in GPT-2 and Llama 3 is"));
}

tl::unexpected<base::Error> malformed(const std::string& where, const std::string& what,
                                      const std::string& expected) {
  return base::fail(base::usage_error(where, fmt::format("{} is not {}", what, expected)));
}

// Absent, null, or a value that has no effect.
bool has_no_effect(const JsonNode& value) {
  return value.is_null() || value == false || value == "" || value == 0 || value == 0.0;
}

base::Result<void> refuse_if_set(const JsonNode& object, const std::string& path,
                                 std::initializer_list<const char*> names,
                                 const std::string& where) {
  for (const char* name : names) {
    const JsonNode& value = json_member(object, name);
    if (!has_no_effect(value)) return unsupported(where, path + name, value);
  }
  return {};
}

// Reads tokens by spelling; `vocabulary` stores them by bytes and by id.
base::Result<void> read_vocab(const JsonNode& vocab, const std::string& where,
                              BpeVocabulary& vocabulary) {
  if (!vocab.is_object()) return malformed(where, "model.vocab", "an object");
  for (const auto& [spelling, id] : vocab.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= kMostTokens) {
      return malformed(where, fmt::format("model.vocab of '{}'", spelling), "an id");
    }
    const auto token = id.get<TokenId>();
    if (token < vocabulary.spellings.size() && vocabulary.spellings[token]) {
      return base::fail(
          base::usage_error(where, fmt::format("model.vocab: two tokens have the id {}", token)));
    }
    const auto bytes = bytes_of_spelling(spelling);
    if (bytes) vocabulary.words.emplace(*bytes, token);
    // A spelling outside the alphabet never results from text; it is kept literally.
    vocabulary.spell(token, bytes ? *bytes : spelling);
  }
  return vocabulary.find_byte_ids(where, "model.vocab");
}

// "left right", or in later files ["left", "right"].
bool merge_halves(const JsonNode& merge, std::string& left, std::string& right) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    left = merge[0].get<std::string>();
    right = merge[1].get<std::string>();
    return true;
  }
  if (!merge.is_string()) return false;
  const auto& text = merge.get_ref<const std::string&>();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) return false;
  left = text.substr(0, space);
  right = text.substr(space + 1);
  return true;
}

base::Result<void> read_merges(const JsonNode& merges, const std::string& where,
                               BpeVocabulary& vocabulary) {
  if (!merges.is_array()) return malformed(where, "model.merges", "a list");
  const auto id_of_spelling = [&](const std::string& spelling) -> std::optional<TokenId> {
    const auto bytes = bytes_of_spelling(spelling);
    const auto found = bytes ? vocabulary.words.find(*bytes) : vocabulary.words.end();
    return found == vocabulary.words.end() ? std::nullopt : std::optional(found->second);
  };
  std::uint32_t rank = 0;
  for (const JsonNode& merge : merges) {
    std::string left;
    std::string right;
    if (!merge_halves(merge, left, right)) {
      return malformed(where, fmt::format("model.merges[{}]", rank), "two tokens");
    }
    const auto left_id = id_of_spelling(left);
    const auto right_id = id_of_spelling(right);
    const auto result = id_of_spelling(left + right);
    if (!left_id || !right_id || !result) {
      const std::string& missing = !left_id ? left : !right_id ? right : left + right;
      return base::fail(base::usage_error(
          where, fmt::format("model.merges[{}]: '{}' is not in the vocabulary", rank, missing)));
    }
    vocabulary.pairs.add(*left_id, *right_id, {rank++, *result});
  }
  return {};
}

base::Result<void> read_added(const JsonNode& added, const std::string& where,
                              BpeVocabulary& vocabulary) {
  if (added.is_null()) return {};
  if (!added.is_array()) return malformed(where, "added_tokens", "a list");
  for (const JsonNode& token : added) {
    const JsonNode& content = json_member(token, "content");
    const JsonNode& id = json_member(token, "id");
    if (!content.is_string() || content == "" || !id.is_number_unsigned() ||
        id.get<std::uint64_t>() >= kMostTokens) {
      return malformed(where, "added_tokens", "objects with content and id");
    }
    ASSAY_TRY_VOID(refuse_if_set(token,
                                 fmt::format("added_tokens '{}' ", content.get<std::string>()),
                                 {"single_word", "lstrip", "rstrip"}, where));
    vocabulary.spell(id.get<TokenId>(), content.get<std::string>());
    vocabulary.added.emplace_back(content.get<std::string>(), id.get<TokenId>());
    if (json_member(token, "as_text") == true) vocabulary.added_as_text = true;
  }
  return {};
}

// Accepts only a ByteLevel that maps bytes to spellings, with or without its pattern as given.
base::Result<void> check_byte_level(const JsonNode& step, bool with_pattern,
                                    const std::string& where) {
  if (json_member(step, "type") != "ByteLevel") return unsupported(where, "pre_tokenizer", step);
  // Decoding could not tell an added space from one in the text.
  if (json_member(step, "add_prefix_space") == true) {
    return unsupported(where, "pre_tokenizer ByteLevel add_prefix_space",
                       json_member(step, "add_prefix_space"));
  }
  const JsonNode& use_regex = json_member(step, "use_regex");
  const bool uses = use_regex.is_null() || use_regex == true;  // absent in old files
  if (uses != with_pattern) {
    return unsupported(where, "pre_tokenizer ByteLevel use_regex", use_regex);
  }
  return {};
}

base::Result<std::string> pattern_of_split(const JsonNode& step, const std::string& where) {
  if (json_member(step, "type") != "Split") return unsupported(where, "pre_tokenizer", step);
  const JsonNode& behavior = json_member(step, "behavior");
  if (behavior != "Isolated") {
    return unsupported(where, "pre_tokenizer Split behavior", behavior);
  }
  if (json_member(step, "invert") == true) {
    return unsupported(where, "pre_tokenizer Split invert", json_member(step, "invert"));
  }
  const JsonNode& pattern = json_member(step, "pattern");
  const JsonNode& regex = json_member(pattern, "Regex");
  if (!regex.is_string()) return unsupported(where, "pre_tokenizer Split pattern", pattern);
  return regex.get<std::string>();
}

// The pattern that splits text into words: ByteLevel with its own pattern (GPT-2), or a Split with
// the file's pattern followed by a ByteLevel without one (Llama 3). Empty if text is not split,
// which is supported only without merges: each byte is then a token.
base::Result<std::string> pattern_of(const JsonNode& pre_tokenizer, std::size_t merges,
                                     const std::string& where) {
  if (json_member(pre_tokenizer, "type") != "Sequence") {
    if (merges == 0 && check_byte_level(pre_tokenizer, false, where)) return std::string();
    ASSAY_TRY_VOID(check_byte_level(pre_tokenizer, true, where));
    return split_pattern("gpt2");
  }
  const JsonNode& steps = json_member(pre_tokenizer, "pretokenizers");
  if (!steps.is_array() || steps.size() != 2) {
    return malformed(where, "pre_tokenizer Sequence", "a Split and a ByteLevel");
  }
  ASSAY_TRY(std::string pattern, pattern_of_split(steps[0], where));
  ASSAY_TRY_VOID(check_byte_level(steps[1], false, where));
  return pattern;
}

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

base::Result<LoadedBpe> read_tokenizer_json(std::string_view text, const std::string& where) {
  const JsonNode file = JsonNode::parse(text, nullptr, false);
  if (!file.is_object()) return malformed(where, "the file", "valid JSON");
  const JsonNode& model = json_member(file, "model");
  const JsonNode& type = json_member(model, "type");
  if (!type.is_null() && type != "BPE") return unsupported(where, "model", model);
  ASSAY_TRY_VOID(refuse_if_set(file, "", {"normalizer", "truncation", "padding"}, where));
  ASSAY_TRY_VOID(refuse_if_set(
      model, "model.",
      {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}, where));
  const JsonNode& decoder = json_member(file, "decoder");
  if (!decoder.is_null() && json_member(decoder, "type") != "ByteLevel") {
    return unsupported(where, "decoder", decoder);
  }
  LoadedBpe loaded;
  loaded.vocabulary.whole_words_first = json_member(model, "ignore_merges") == true;
  ASSAY_TRY_VOID(read_vocab(json_member(model, "vocab"), where, loaded.vocabulary));
  ASSAY_TRY_VOID(read_merges(json_member(model, "merges"), where, loaded.vocabulary));
  ASSAY_TRY_VOID(read_added(json_member(file, "added_tokens"), where, loaded.vocabulary));
  ASSAY_TRY(loaded.pattern, pattern_of(json_member(file, "pre_tokenizer"),
                                       json_member(model, "merges").size(), where));
  return loaded;
}

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
