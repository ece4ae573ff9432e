#include "train/hf_tokenizer.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/json.h"

namespace assay::train {
namespace {

// A template such as `<|bos|> text`: transformers puts the special tokens around a text.
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

base::Result<HfTokenizerFiles> hf_tokenizer_files(const TokenizerRecord& tokenizer,
                                                  std::int64_t context) {
  ASSAY_TRY(const auto made, make_tokenizer(tokenizer));
  HfTokenizerFiles files{.tokenizer = *tokenizer.definition};
  base::Json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                    {"model_max_length", context},
                    {"clean_up_tokenization_spaces", false}};
  const auto added = [&](const std::optional<data::TokenId>& id) -> const std::string* {
    for (const auto& [text, added_id] : made->added()) {
      if (added_id == id) return &text;
    }
    return nullptr;
  };
  if (const std::string* bos = added(tokenizer.bos)) {
    config["bos_token"] = *bos;
    config["eos_token"] = *bos;  // the next document's beginning ends this one
    // In the definition as we write it, and never inside a string: quotes are escaped there. A tree
    // of a hundred thousand keys is not needed for this.
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
