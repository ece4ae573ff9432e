// Tokenizes documents into a shard in constant memory, on several threads: `assay data tokenize`.
//
//   UnitReader ─ units ─ tokens_of_unit (threads) ─ in order ─ UnitJoiner ─ ShardWriter
//
// The shard depends only on the documents and the tokenizer, not on the number of threads or on
// interruptions.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/data/documents/input_files.h"
#include "train/data/shard_format.h"
#include "train/data/tokenizer.h"
#include "train/data/unit_tokens.h"

namespace assay::data {

struct TokenizeRequest {
  std::vector<InputFile> files;
  std::filesystem::path output;
  DocumentRules rules = {};  // tokens beyond the tokenizer's vocabulary enlarge it
  unsigned threads = 0;      // 0: as many as there are processors
  // Stops soon after this many tokens, not counting the first of each document, possibly in the
  // middle of a document; 0: at the end of the files.
  std::uint64_t enough = 0;
  const std::atomic<bool>* stop = nullptr;  // when true: an error
  // Called with the number of bytes on disk just read, as for base::Progress::advance.
  std::function<void(std::int64_t)> progress = {};

  // For tests: the size of units, and how much text is tokenized between two writes of the journal,
  // which is also written every few seconds.
  std::size_t unit_bytes = std::size_t{1} << 20;
  std::uint64_t journal_bytes = std::uint64_t{256} << 20;
};

struct TokenizeSummary {
  ShardHeader shard;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;                       // total size of the documents
  std::optional<std::uint64_t> resumed_at = {};  // number of tokens made before the interruption
  RowsWithout rows_without = {};                 // the first bad one since then
};

base::Result<TokenizeSummary> tokenize_files(const Tokenizer& tokenizer,
                                             const TokenizeRequest& request);

}  // namespace assay::data
