// Tokenizes documents into a shard in constant memory, on several threads: `assay data tokenize`.
//
//   UnitReader ─ units ─ tokens_of_unit (threads) ─ in order ─ UnitJoiner ─ ShardWriter
//
// The bytes of the shard depend on the documents and the tokenizer only: not on the number of
// threads, nor on how often the work was interrupted.
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
  DocumentRules rules = {};  // tokens outside the vocabulary enlarge it
  unsigned threads = 0;      // 0: as many as there are processors
  // Ends soon after there are so many tokens that are not the first of their document, wherever in
  // a document that is; 0: at the end of the files.
  std::uint64_t enough = 0;
  const std::atomic<bool>* stop = nullptr;  // when true: an error
  // Called with the number of bytes on disk just read, as for base::Progress::advance.
  std::function<void(std::int64_t)> progress = {};

  // For tests: how the text is divided, and how much of it is tokenized before the progress is
  // stored, which is also done every few seconds.
  std::size_t unit_bytes = std::size_t{1} << 20;
  std::uint64_t journal_bytes = std::uint64_t{256} << 20;
};

struct TokenizeSummary {
  ShardHeader shard;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;                       // of documents
  std::optional<std::uint64_t> resumed_at = {};  // tokens that an interrupted run had made
};

base::Result<TokenizeSummary> tokenize_files(const Tokenizer& tokenizer,
                                             const TokenizeRequest& request);

}  // namespace assay::data
