#include "train/data/load_tokenizer.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "train/data/tiktoken.h"
#include "train/data/tokenizer_json.h"
#include "train/data/word_splitter.h"

namespace assay::data {
namespace {

constexpr base::Bytes kMostFileBytes{std::int64_t{256} << 20};

base::Result<LoadedBpe> read_vocabulary(const TokenizerChoice& choice) {
  ASSAY_TRY(const std::string text, base::read_file(choice.source, kMostFileBytes));
  const bool given = !choice.pattern.empty() || !choice.special.empty();
  // Base64 has no braces, so the formats cannot be confused.
  if (base::trim(text).starts_with('{')) {
    if (given) {
      return base::fail(base::usage_error(choice.source,
                                          "a tokenizer.json has its own pattern and special tokens",
                                          "leave --pattern and --special out"));
    }
    return read_tokenizer_json(text, choice.source);
  }
  if (choice.pattern.empty()) {
    return base::fail(base::usage_error(
        choice.source, "a tiktoken file does not define how text is split into words",
        choice.has_options
            ? fmt::format("add --pattern {}", fmt::join(split_pattern_names(), " or "))
            : "give a tokenizer.json"));
  }
  LoadedBpe loaded;
  ASSAY_TRY(loaded.pattern, split_pattern(choice.pattern));
  ASSAY_TRY(loaded.vocabulary, read_tiktoken(text, choice.source, choice.special));
  return loaded;
}

base::Result<std::unique_ptr<const Tokenizer>> make_tokenizer(LoadedBpe loaded,
                                                              const std::string& where) {
  if (loaded.pattern.empty()) {
    for (TokenId byte = 0; byte < 256; ++byte) {
      if (loaded.vocabulary.byte_ids[byte] == byte) continue;
      return base::fail(base::usage_error(where,
                                          "does not split words, and its bytes have other ids",
                                          "byte-level BPE as in GPT-2 and Llama 3 is supported"));
    }
    return byte_tokenizer(std::move(loaded.vocabulary.added));
  }
  ASSAY_TRY(WordSplitter splitter, WordSplitter::compile(loaded.pattern, where));
  return bpe_tokenizer(std::move(loaded.vocabulary), std::move(splitter),
                       std::move(loaded.pattern));
}

}  // namespace

base::Result<std::unique_ptr<const Tokenizer>> load_tokenizer(const TokenizerChoice& choice) {
  if (choice.source == "bytes") {
    if (!choice.pattern.empty() || !choice.special.empty()) {
      return base::fail(base::usage_error("--tokenizer bytes",
                                          "has neither a pattern nor special tokens",
                                          "leave --pattern and --special out"));
    }
    return byte_tokenizer();
  }
  ASSAY_TRY(LoadedBpe loaded, read_vocabulary(choice));
  loaded.vocabulary.added_as_text |= choice.added_as_text;
  return make_tokenizer(std::move(loaded), choice.source);
}

base::Result<std::unique_ptr<const Tokenizer>> tokenizer_of(const std::string& definition,
                                                            const std::string& where) {
  ASSAY_TRY(LoadedBpe loaded, read_tokenizer_json(definition, where));
  return make_tokenizer(std::move(loaded), where);
}

}  // namespace assay::data
