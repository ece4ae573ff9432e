// ShardWriter: writes a shard of any size in constant memory. The file is renamed into place when
// it is complete; an abandoned one is removed.
//
// A writer with documents keeps two drafts with fixed names next to the output, one for tokens and
// one for the list of documents, so that writing can be resumed after a crash: the caller stores
// progress() from time to time, and resume() truncates the drafts to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hash/blake3.h"
#include "train/data/shard_format.h"

namespace assay::data {

// A shard's information about its documents.
struct ShardDocuments {
  std::string definition;  // of the tokenizer (tokenizer_json.h); may be empty
  std::optional<std::uint32_t> bos = {};
  std::optional<std::uint32_t> eos = {};
};

// How much of a shard is in the drafts.
struct ShardProgress {
  std::uint64_t tokens = 0;
  std::uint64_t documents = 0;
  hash::Digest digest;  // BLAKE3 of the tokens' bytes so far
  bool operator==(const ShardProgress&) const = default;
};

class ShardWriter {
 public:
  // Uses the smallest token type that holds the vocabulary.
  static base::Result<ShardWriter> create(const std::filesystem::path& path,
                                          std::uint64_t vocabulary);
  // With documents. Fails if another process is writing the same shard.
  static base::Result<ShardWriter> create(const std::filesystem::path& path,
                                          std::uint64_t vocabulary, ShardDocuments documents);
  // Continues an interrupted writer with documents. Fails if the drafts do not match the progress.
  static base::Result<ShardWriter> resume(const std::filesystem::path& path,
                                          std::uint64_t vocabulary, ShardDocuments documents,
                                          const ShardProgress& progress);
  ShardWriter(ShardWriter&&) noexcept;
  ShardWriter& operator=(ShardWriter&&) = delete;
  ~ShardWriter();

  // Marks the next token as the first of a document. Documents without tokens are not listed.
  void begin_document() { document_begins_ = true; }
  // Fails on a token outside the vocabulary; the file is then not created.
  base::Result<void> append(std::span<const std::uint32_t> tokens);
  // Number of tokens appended so far.
  [[nodiscard]] std::uint64_t tokens() const { return header_.count; }
  // Flushes everything to the drafts and returns how much that is.
  base::Result<ShardProgress> progress();
  // Keeps the drafts if the writer is abandoned.
  void keep_drafts() { kept_ = true; }
  // Completes the file; nothing may be appended afterwards.
  base::Result<ShardHeader> finish();

 private:
  ShardWriter(std::filesystem::path path, std::string draft, base::UniqueFd file,
              std::uint64_t vocabulary);
  base::Result<void> flush();
  base::Result<void> open_documents(ShardDocuments documents, int flags);
  base::Result<void> recover(const ShardProgress& progress);
  base::Result<void> write_documents();
  [[nodiscard]] std::string documents_draft() const { return draft_ + ".documents"; }

  std::filesystem::path path_;
  std::string draft_;  // temporary name; empty once renamed or moved from
  bool kept_ = false;
  base::UniqueFd file_;
  ShardHeader header_;
  hash::Hasher hasher_;
  std::vector<std::byte> buffer_;

  // For shards with documents.
  std::string definition_;
  base::UniqueFd starts_file_;
  std::vector<std::uint64_t> starts_;  // not yet in the file
  bool document_begins_ = false;
};

}  // namespace assay::data
