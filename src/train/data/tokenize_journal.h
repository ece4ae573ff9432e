// The journal of a tokenization: its progress, stored in a file next to the output so that an
// interrupted run can be resumed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/result.h"
#include "hash/digest.h"
#include "train/data/documents/unit_reader.h"
#include "train/data/shard_writer.h"

namespace assay::data {

struct TokenizeJournal {
  // BLAKE3 of everything that the tokens so far depend on: the options, and the files read so far.
  hash::Digest request;
  ReadPosition position;
  ShardProgress shard;
  std::uint64_t documents = 0;
  std::uint64_t null_rows = 0;  // without a document, and skipped as bad
  std::uint64_t bad_rows = 0;
  std::uint64_t text_bytes = 0;
  bool operator==(const TokenizeJournal&) const = default;
};

std::filesystem::path journal_path(const std::filesystem::path& output);

base::Result<void> write_journal(const std::filesystem::path& output,
                                 const TokenizeJournal& journal);
// Nothing if there is no valid journal: the work then starts over.
std::optional<TokenizeJournal> read_journal(const std::filesystem::path& output);
void remove_journal(const std::filesystem::path& output);

}  // namespace assay::data
