// Tokenizes documents into a shard in constant memory: `assay data tokenize`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/data/shard_format.h"
#include "train/data/tokenizer.h"

namespace assay::data {

struct TokenizeRequest {
  std::vector<std::string> files;  // one document each; "-" is standard input
  std::filesystem::path output;
  std::optional<TokenId> append_eos = {};  // after every document; may enlarge the vocabulary
  // Called with the number of bytes just read, as for base::Progress::advance.
  std::function<void(std::int64_t)> progress = {};
};

struct TokenizeSummary {
  ShardHeader shard;
  std::uint64_t bytes = 0;  // of text
};

base::Result<TokenizeSummary> tokenize_files(const Tokenizer& tokenizer,
                                             const TokenizeRequest& request);

// The total size of the files; nothing if standard input is one of them.
std::optional<std::int64_t> total_bytes(const std::vector<std::string>& files);

}  // namespace assay::data
