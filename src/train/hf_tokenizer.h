// A checkpoint's tokenizer as the files that Hugging Face transformers reads.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "train/tokenizer_record.h"

namespace assay::train {

struct HfTokenizerFiles {
  std::string tokenizer;  // tokenizer.json
  std::string config;     // tokenizer_config.json
};

// The tokenizer must be known. What came before and after each document in training is added to a
// text by transformers, too; `context` is the longest text that the model takes.
base::Result<HfTokenizerFiles> hf_tokenizer_files(const TokenizerRecord& tokenizer,
                                                  std::int64_t context);

}  // namespace assay::train
