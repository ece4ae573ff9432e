// The journal of a tokenization: how far it is, in a file beside its output, so that one that was
// killed goes on.
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
  // BLAKE3 of everything that the tokens so far depend on: options, and files as far as they were
  // read.
  hash::Digest request;
  ReadPosition position;
  ShardProgress shard;
  std::uint64_t documents = 0;
  std::uint64_t text_bytes = 0;
  bool operator==(const TokenizeJournal&) const = default;
};

std::filesystem::path journal_path(const std::filesystem::path& output);

base::Result<void> write_journal(const std::filesystem::path& output,
                                 const TokenizeJournal& journal);
// Nothing if there is none, or none that can be understood: the work is then done again.
std::optional<TokenizeJournal> read_journal(const std::filesystem::path& output);
void remove_journal(const std::filesystem::path& output);

}  // namespace assay::data
