#include "train/hf_tokenizer.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "base/units.h"

namespace assay::train {
namespace {

// Not base::Json, which searches objects linearly: there are hundreds of special tokens.
using JsonNode = nlohmann::json;

constexpr base::Bytes kMostFileBytes{std::int64_t{256} << 20};

// A file of the folder, without its vocabulary; null if it is missing or unreadable.
JsonNode read_without_model(const std::filesystem::path& path) {
  const auto text = base::read_file(path, kMostFileBytes);
  if (!text) return nullptr;
  const auto keep = [](int depth, JsonNode::parse_event_t event, const JsonNode& parsed) {
    return depth != 1 || event != JsonNode::parse_event_t::key || parsed != "model";
  };
  JsonNode file = JsonNode::parse(*text, keep, false);
  return file.is_object() ? file : JsonNode();
}

const JsonNode& member(const JsonNode& object, const std::string& name) {
  static const JsonNode kAbsent;
  if (!object.is_object()) return kAbsent;
  const auto found = object.find(name);
  return found == object.end() ? kAbsent : *found;
}

// The post-processor that adds tokens around a text: on its own, or one of a sequence.
const JsonNode& template_of(const JsonNode& processor) {
  if (member(processor, "type") == "TemplateProcessing") return processor;
  for (const JsonNode& one : member(processor, "processors")) {
    if (member(one, "type") == "TemplateProcessing") return one;
  }
  return member(nullptr, "");
}

// Its first token, as text; empty if the text comes first.
std::string first_of(const JsonNode& processing) {
  const JsonNode& single = member(processing, "single");
  if (!single.is_array() || single.empty()) return {};
  const JsonNode& token = member(member(single[0], "SpecialToken"), "id");
  return token.is_string() ? token.get<std::string>() : std::string();
}

// Given as a string, or as an object that contains it.
std::string bos_of(const JsonNode& config) {
  const JsonNode& bos = member(config, "bos_token");
  const JsonNode& content = bos.is_object() ? member(bos, "content") : bos;
  return content.is_string() ? content.get<std::string>() : std::string();
}

// A template such as `<|bos|> text`, by which transformers adds special tokens around a text.
base::Json around_text(const std::string& bos, const TokenizerRecord& tokenizer) {
  const base::Json special = {{"SpecialToken", {{"id", bos}, {"type_id", 0}}}};
  const auto sequence = [](const char* name, int type) {
    return base::Json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", base::Json::array({special, sequence("A", 0)})},
          {"pair", base::Json::array({special, sequence("A", 0), special, sequence("B", 1)})},
          {"special_tokens", {{bos, {{"id", bos}, {"ids", {*tokenizer.bos}}, {"tokens", {bos}}}}}}};
}

}  // namespace

std::optional<data::TokenId> hf_bos(const std::filesystem::path& folder,
                                    const data::Tokenizer& tokenizer) {
  const JsonNode config = read_without_model(folder / "tokenizer_config.json");
  const JsonNode& type = member(config, "tokenizer_class");
  std::string bos;
  if (type == "LlamaTokenizer" || type == "LlamaTokenizerFast") {
    // This class builds its own template, with the token unless add_bos_token is false.
    if (member(config, "add_bos_token") != false) bos = bos_of(config);
  } else {
    const JsonNode file = read_without_model(folder / "tokenizer.json");
    bos = first_of(template_of(member(file, "post_processor")));
  }
  for (const auto& [text, id] : tokenizer.added()) {
    if (text == bos) return id;
  }
  return std::nullopt;
}

bool hf_added_as_text(const std::filesystem::path& folder) {
  const JsonNode config = read_without_model(folder / "tokenizer_config.json");
  return member(config, "split_special_tokens") == true;
}

base::Result<HfTokenizerFiles> hf_tokenizer_files(const TokenizerRecord& tokenizer,
                                                  std::int64_t context) {
  ASSAY_TRY(const auto made, make_tokenizer(tokenizer));
  HfTokenizerFiles files{.tokenizer = *tokenizer.definition};
  constexpr std::string_view kAsText = R"(,"as_text":true})";  // of an added token
  bool as_text = false;
  for (std::size_t at = 0; (at = files.tokenizer.find(kAsText, at)) != std::string::npos;) {
    files.tokenizer.replace(at, kAsText.size(), "}");
    as_text = true;
  }
  base::Json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                    {"model_max_length", context},
                    {"clean_up_tokenization_spaces", false}};
  if (as_text) config["split_special_tokens"] = true;
  const auto added = [&](const std::optional<data::TokenId>& id) -> const std::string* {
    for (const auto& [text, added_id] : made->added()) {
      if (added_id == id) return &text;
    }
    return nullptr;
  };
  if (const std::string* bos = added(tokenizer.bos)) {
    config["bos_token"] = *bos;
    config["eos_token"] = *bos;  // the beginning of the next document ends this one
    // Searches the definition as text: we wrote it, and inside strings quotes are escaped, so this
    // cannot match there. Parsing a hundred thousand keys for this would be wasteful.
    constexpr std::string_view kNone = R"("post_processor":null)";
    if (const std::size_t at = files.tokenizer.find(kNone); at != std::string::npos) {
      files.tokenizer.replace(at, kNone.size(),
                              R"("post_processor":)" + around_text(*bos, tokenizer).dump());
    }
  }
  if (const std::string* eos = added(tokenizer.eos)) config["eos_token"] = *eos;
  files.config = base::json_text(config);
  return files;
}

}  // namespace assay::train
