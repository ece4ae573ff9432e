#include "train/data/tokenize_journal.h"

#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/units.h"

namespace assay::data {
namespace {

constexpr int kFormat = 2;
constexpr base::Bytes kMostJournalBytes{std::int64_t{64} << 10};

}  // namespace

std::filesystem::path journal_path(const std::filesystem::path& output) {
  return output.string() + ".partial.json";
}

base::Result<void> write_journal(const std::filesystem::path& output,
                                 const TokenizeJournal& journal) {
  const base::Json json{{"format", kFormat},
                        {"request", journal.request.hex()},
                        {"file", journal.position.file},
                        {"offset", journal.position.offset},
                        {"row", journal.position.row},
                        {"inside", journal.position.inside},
                        {"shard_tokens", journal.shard.tokens},
                        {"shard_documents", journal.shard.documents},
                        {"shard_blake3", journal.shard.digest.hex()},
                        {"documents", journal.documents},
                        {"null_rows", journal.null_rows},
                        {"bad_rows", journal.bad_rows},
                        {"text_bytes", journal.text_bytes}};
  return base::replace_file(journal_path(output), json.dump(1) + "\n");
}

std::optional<TokenizeJournal> read_journal(const std::filesystem::path& output) {
  // Usually there is none. An error about a missing file would list the folder for a similar name.
  std::error_code ignored;
  if (!std::filesystem::exists(journal_path(output), ignored)) return std::nullopt;
  const auto text = base::read_file(journal_path(output), kMostJournalBytes);
  if (!text) return std::nullopt;
  const base::Json json = base::Json::parse(*text, nullptr, false);
  if (!json.is_object() || json.value("format", base::Json()) != kFormat) return std::nullopt;
  TokenizeJournal journal;
  const auto number = [&](const char* name, auto& value) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number_unsigned()) return false;
    value = found->get<std::uint64_t>();
    return true;
  };
  const auto digest = [&](const char* name, hash::Digest& value) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_string()) return false;
    const auto parsed = hash::parse_digest(found->get<std::string>());
    if (parsed) value = *parsed;
    return parsed.has_value();
  };
  const auto inside = json.find("inside");
  if (inside == json.end() || !inside->is_boolean()) return std::nullopt;
  journal.position.inside = inside->get<bool>();
  const bool whole =
      number("file", journal.position.file) && number("offset", journal.position.offset) &&
      number("row", journal.position.row) && number("shard_tokens", journal.shard.tokens) &&
      number("shard_documents", journal.shard.documents) &&
      number("documents", journal.documents) && number("null_rows", journal.null_rows) &&
      number("bad_rows", journal.bad_rows) && number("text_bytes", journal.text_bytes) &&
      digest("request", journal.request) && digest("shard_blake3", journal.shard.digest);
  return whole ? std::optional(journal) : std::nullopt;
}

void remove_journal(const std::filesystem::path& output) {
  ::unlink(journal_path(output).c_str());
}

}  // namespace assay::data
