#include "store/artifacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <tuple>

#include "store/column_encoding.h"
#include "store/run_reader.h"

namespace assay::store {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return (c | 0x20) - 'a' + 10;
}

// The digest that starts with these digits, with all others set to `filler`.
hash::Digest filled(std::string_view hex, unsigned filler) {
  hash::Digest digest;
  for (std::size_t i = 0; i < 2 * hash::Digest::kSize; ++i) {
    const unsigned digit = i < hex.size() ? static_cast<unsigned>(digit_of(hex[i])) : filler;
    std::uint8_t& byte = digest.bytes[i / 2];
    byte = static_cast<std::uint8_t>(static_cast<unsigned>(byte) << 4U | digit);
  }
  return digest;
}

FileAt file_at(const Statement& row) {
  return {row.integer(0), row.text(1), digest_at(row, 2), row.integer(3)};
}

base::Result<std::vector<FileAt>> files_of(Statement& select) {
  std::vector<FileAt> files;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) { files.push_back(file_at(row)); }));
  return files;
}

base::Result<std::vector<FileAt>> with_content(Store& store, std::string_view table,
                                               const hash::Digest& content, std::int64_t limit) {
  ASSAY_TRY(Statement select, store.database().prepare(fmt::format(
                                  "SELECT run, path, blake3, size FROM {}"
                                  " WHERE substr(blake3, 1, 8) = substr(?1, 1, 8) AND blake3 = ?1"
                                  " ORDER BY run DESC LIMIT ?2",
                                  table)));
  ASSAY_TRY_VOID(select.bind(content.bytes, limit));
  return files_of(select);
}

// RunParameters: 1 the reader's id, 2 its path, 3 its digest, 4 when it ended. The first finds an
// earlier producer, the second one that overlapped the reader in time, the third the same content
// at another path.
constexpr std::array kProducerQueries = {
    "SELECT run, path, blake3, size FROM run_output WHERE path = ?2 AND run < ?1 AND"
    " (?3 IS NULL AND status <> 'deleted' OR blake3 = ?3) AND ?4 IS NOT NULL"
    " ORDER BY run DESC LIMIT 1",
    "SELECT o.run, o.path, o.blake3, o.size FROM run_output o JOIN run j ON j.id = o.run"
    " WHERE o.path = ?2 AND o.run > ?1 AND j.started_ns <= ?4 AND"
    " (?3 IS NULL AND o.status <> 'deleted' OR o.blake3 = ?3) ORDER BY o.run LIMIT 1",
    "SELECT o.run, o.path, o.blake3, o.size FROM run_output o JOIN run j ON j.id = o.run"
    " WHERE substr(o.blake3, 1, 8) = substr(?3, 1, 8) AND o.blake3 = ?3 AND o.run < ?1"
    " AND o.path <> ?2 AND o.size > 0 AND j.status = 'done' AND ?4 IS NOT NULL AND NOT EXISTS"
    " (SELECT 1 FROM listed_input i CROSS JOIN run_list u ON u.list = i.list"
    " WHERE i.path = ?2 AND u.run = o.run AND i.blake3 = ?3)"
    " ORDER BY o.run DESC LIMIT 1",
};
constexpr std::size_t kEarlier = 0;
constexpr std::size_t kOverlapping = 1;
constexpr std::size_t kSameContent = 2;
// Whether any run began while the reader ran. Usually none did, which saves the second query.
constexpr const char* kOverlapQuery =
    "SELECT 1 FROM run WHERE id > ?1 AND started_ns <= ?2 LIMIT 1";
// Inputs, and files modified in place, that may come from an output with path ?1 and digest ?2.
constexpr const char* kReaderQuery =
    "SELECT run, path, blake3, size FROM run_input"
    " WHERE path = ?1 AND (blake3 = ?2 OR blake3 IS NULL)"
    " UNION ALL SELECT o.run, o.path, o.before, -1 FROM run_output o"
    " WHERE o.path = ?1 AND o.before = ?2 AND NOT EXISTS"
    " (SELECT 1 FROM listed_input i CROSS JOIN run_list u ON u.list = i.list"
    " WHERE i.path = ?1 AND u.run = o.run)";
constexpr std::size_t kOverlap = kProducerQueries.size();
constexpr std::size_t kReaders = kOverlap + 1;

std::int64_t end_of(const RunRecord& run) {
  if (run.status == RunStatus::kRunning) return std::numeric_limits<std::int64_t>::max();
  return run.started_unix_ns + static_cast<std::int64_t>(run.duration_s * 1e9);
}

}  // namespace

base::Result<std::vector<hash::Digest>> contents_starting(Store& store, std::string_view hex,
                                                          std::int64_t limit) {
  std::set<hash::Digest> found;
  for (const char* table : {"run_output", "run_input"}) {
    ASSAY_TRY(Statement select,
              store.database().prepare(fmt::format(
                  "SELECT DISTINCT blake3 FROM {} WHERE substr(blake3, 1, 8) >= substr(?1, 1, 8)"
                  " AND substr(blake3, 1, 8) <= substr(?2, 1, 8) AND blake3 >= ?1 AND blake3 <= ?2"
                  " LIMIT ?3",
                  table)));
    ASSAY_TRY_VOID(select.bind(filled(hex, 0).bytes, filled(hex, 15).bytes, limit));
    ASSAY_TRY_VOID(select.each([&](const Statement& row) {
      if (const auto digest = digest_at(row, 0)) found.insert(*digest);
    }));
  }
  std::vector<hash::Digest> digests(found.begin(), found.end());
  const auto most = static_cast<std::size_t>(limit);
  if (limit >= 0 && digests.size() > most) digests.resize(most);
  return digests;
}

base::Result<std::vector<FileAt>> producers_of(Store& store, const hash::Digest& content,
                                               std::int64_t limit) {
  return with_content(store, "run_output", content, limit);
}

base::Result<std::vector<FileAt>> consumers_of(Store& store, const hash::Digest& content,
                                               std::int64_t limit) {
  return with_content(store, "run_input", content, limit);
}

base::Result<std::optional<FileAt>> latest_at(Store& store, std::string_view path) {
  for (const char* table : {"run_output", "run_input"}) {
    ASSAY_TRY(Statement select,
              store.database().prepare(fmt::format("SELECT run, path, blake3, size FROM {}"
                                                   " WHERE path = ?1 ORDER BY run DESC LIMIT 1",
                                                   table)));
    ASSAY_TRY_VOID(select.bind(path));
    ASSAY_TRY(const bool row, select.next_row());
    if (row) return file_at(select);
  }
  return std::nullopt;
}

base::Result<std::vector<FileAt>> files_below(Store& store, std::string_view folder) {
  // '0' is the character after '/': an index finds the range.
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT run, path, blake3, size, status FROM run_output"
                                     " WHERE path > ?1 || '/' AND path < ?1 || '0' AND stream = 0"
                                     " ORDER BY path, run DESC"));
  ASSAY_TRY_VOID(select.bind(folder));
  std::vector<FileAt> files;
  std::string last;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    FileAt file = file_at(row);
    if (file.path == last) return;
    last = file.path;
    if (row.text(4) != name_of(OutputStatus::kDeleted)) files.push_back(std::move(file));
  }));
  return files;
}

base::Result<Producers> Producers::prepare(Store& store) {
  std::vector<Statement> statements;
  for (const char* sql : kProducerQueries) {
    ASSAY_TRY(Statement statement, store.database().prepare(sql));
    statements.push_back(std::move(statement));
  }
  for (const char* sql : {kOverlapQuery, kReaderQuery}) {
    ASSAY_TRY(Statement statement, store.database().prepare(sql));
    statements.push_back(std::move(statement));
  }
  return Producers(store, std::move(statements));
}

base::Result<std::optional<FileAt>> Producers::query_file(std::size_t which,
                                                          const RunRecord& reader,
                                                          const Input& input) {
  Statement& query = statements_[which];
  ASSAY_TRY_VOID(query.bind(reader.id, input.path, bytes_of(input.blake3), end_of(reader)));
  ASSAY_TRY(const bool row, query.next_row());
  std::optional<FileAt> found;
  if (row) found = file_at(query);
  query.reset();
  return found;
}

base::Result<bool> Producers::has_overlapping_runs(const RunRecord& reader) {
  const auto [known, is_new] = overlapping_.try_emplace(reader.id, false);
  if (is_new) {
    Statement& query = statements_[kOverlap];
    ASSAY_TRY_VOID(query.bind(reader.id, end_of(reader)));
    ASSAY_TRY(known->second, query.next_row());
    query.reset();
  }
  return known->second;
}

base::Result<std::optional<FileAt>> Producers::of(const RunRecord& reader, const Input& input) {
  ASSAY_TRY(auto earlier, query_file(kEarlier, reader, input));
  if (earlier) return earlier;
  ASSAY_TRY(const bool any, has_overlapping_runs(reader));
  if (!any) return std::nullopt;
  return query_file(kOverlapping, reader, input);
}

base::Result<std::optional<FileAt>> Producers::same_content(const RunRecord& reader,
                                                            const Input& input) {
  if (!input.blake3) return std::nullopt;
  return query_file(kSameContent, reader, input);
}

base::Result<const RunRecord*> Producers::head(RunId id) {
  auto known = heads_.find(id);
  if (known == heads_.end()) {
    ASSAY_TRY(RunRecord run, head_of(*store_, id));
    known = heads_.emplace(id, std::move(run)).first;
  }
  return &known->second;
}

base::Result<std::vector<FileAt>> Producers::readers(const RunRecord& run, const Output& output) {
  Statement& query = statements_[kReaders];
  ASSAY_TRY_VOID(query.bind(output.path, bytes_of(output.blake3)));
  ASSAY_TRY(std::vector<FileAt> candidates, files_of(query));
  std::vector<FileAt> readers;
  for (FileAt& file : candidates) {
    if (file.run == run.id) continue;
    ASSAY_TRY(const RunRecord* reader, head(file.run));
    ASSAY_TRY(const auto producer, of(*reader, {file.path, file.blake3, file.size}));
    if (producer && producer->run == run.id && producer->path == output.path) {
      readers.push_back(std::move(file));
    }
  }
  std::sort(readers.begin(), readers.end(), [](const FileAt& a, const FileAt& b) {
    return std::tie(a.run, a.path) < std::tie(b.run, b.path);
  });
  return readers;
}

}  // namespace assay::store
