// Documents to a shard, in constant memory: what `assay data tokenize` does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/data/shard_header.h"
#include "train/data/tokenizer.h"

namespace assay::data {

struct TokenizeRequest {
  std::vector<std::string> files;  // a document each; "-" is standard input
  std::filesystem::path output;
  std::optional<TokenId> append_eos = {};  // after every document; may enlarge the vocabulary
  // Told how many more bytes were read. base::Progress::advance fits.
  std::function<void(std::int64_t)> progress = {};
};

struct TokenizeSummary {
  ShardHeader shard;
  std::uint64_t bytes = 0;  // of text
};

base::Result<TokenizeSummary> tokenize_files(const Tokenizer& tokenizer,
                                             const TokenizeRequest& request);

// How many bytes the files have; nothing when standard input is among them.
std::optional<std::int64_t> total_bytes(const std::vector<std::string>& files);

}  // namespace assay::data
