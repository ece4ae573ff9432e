#include "store/stage_identity.h"

#include <algorithm>
#include <cstring>

#include "hash/blake3.h"
#include "store/column_encoding.h"
#include "store/streams.h"

namespace assay::store {
namespace {

template <class... Values>
base::Result<std::int64_t> first_number(Database& database, std::string_view sql,
                                        const Values&... values) {
  ASSAY_TRY(Statement select, database.prepare(sql));
  ASSAY_TRY_VOID(select.bind(values...));
  ASSAY_TRY(const bool row, select.next_row());
  return row ? select.integer(0) : 0;
}

// `sort < a` and `sort < b` are different commands although their arguments are the same.
std::string standard_input_of(const std::vector<std::string>& redirects) {
  for (const std::string& redirect : redirects) {
    if (redirect.starts_with("0<")) return redirect;
  }
  return "";
}

base::Result<std::int64_t> same_command(Database& database, const RunRecord& run) {
  ASSAY_TRY(Statement select,
            database.prepare(
                "SELECT stage, redirects FROM run WHERE substr(command, 1, 64) = substr(?1, 1, 64)"
                " AND command = ?1 AND directory = ?2 AND id <> ?3 AND stage IS NOT NULL"
                " ORDER BY id DESC"));
  ASSAY_TRY_VOID(select.bind(packed_strings(run.command), run.directory, run.id));
  const std::string input = standard_input_of(run.redirects);
  for (;;) {
    ASSAY_TRY(const bool row, select.next_row());
    if (!row) return 0;
    if (standard_input_of(strings_at(select, 1)) == input) return select.integer(0);
  }
}

// Whether the run changes a file in place (one that it read or modified), not counting its standard
// output.
base::Result<bool> changes_in_place(Database& database, RunId run,
                                    const std::vector<std::string>& redirects) {
  const std::set<std::string> left_out = stream_paths(redirects);
  ASSAY_TRY(Statement select,
            database.prepare("SELECT path FROM run_output o WHERE run = ?1 AND status <> 'deleted'"
                             " AND (before IS NOT NULL OR EXISTS (SELECT 1 FROM listed_input i"
                             " CROSS JOIN run_list u ON u.list = i.list"
                             " WHERE i.path = o.path AND u.run = ?1))"));
  ASSAY_TRY_VOID(select.bind(run));
  for (;;) {
    ASSAY_TRY(const bool row, select.next_row());
    if (!row) return false;
    if (!left_out.contains(select.text(0))) return true;
  }
}

base::Result<std::int64_t> same_files(Database& database, const RunRecord& run,
                                      const hash::Digest& files) {
  ASSAY_TRY(Statement select,
            database.prepare("SELECT s.number, j.id, j.redirects FROM run j JOIN stage s"
                             " ON s.run = j.id WHERE j.files = ?1 AND j.directory = ?2"
                             " AND j.id <> ?3 ORDER BY j.id DESC"));
  ASSAY_TRY_VOID(select.bind(files.bytes, run.directory, run.id));
  for (bool asked = false;; asked = true) {
    ASSAY_TRY(const bool row, select.next_row());
    if (!row) return 0;
    if (!asked) {
      ASSAY_TRY(const bool in_place, changes_in_place(database, run.id, run.redirects));
      if (in_place) return 0;
    }
    ASSAY_TRY(const bool other,
              changes_in_place(database, select.integer(1), strings_at(select, 2)));
    if (!other) return select.integer(0);
  }
}

}  // namespace

void PathSet::change(std::string_view path, std::uint64_t times) {
  if (path.size() > root_.size() && path.starts_with(root_) && path[root_.size()] == '/') {
    path.remove_prefix(root_.size() + 1);
  }
  // Two multiply-and-shift hashes with different constants, 8 bytes at a time.
  std::uint64_t first = path.size();
  std::uint64_t second = ~first;
  while (!path.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(path.size(), sizeof word);
    std::memcpy(&word, path.data(), size);
    path.remove_prefix(size);
    first = (first ^ word) * 0x9e3779b97f4a7c15U;
    first ^= first >> 29U;
    second = (second ^ word) * 0xc2b2ae3d27d4eb4fU;
    second ^= second >> 31U;
  }
  sum_[0] += times * first * 0xbf58476d1ce4e5b9U;
  sum_[1] += times * second * 0x94d049bb133111ebU;
  count_ += times;
}

base::Result<std::optional<hash::Digest>> files_identity(Database& database, const RunRecord& run,
                                                         PathSet read, PathSet left) {
  for (const std::string& path : stream_paths(run)) {
    ASSAY_TRY(const std::int64_t was_read,
              first_number(database, "SELECT 1 FROM run_input WHERE path = ?1 AND run = ?2", path,
                           run.id));
    if (was_read != 0) read.remove(path);
    ASSAY_TRY(const std::int64_t was_left,
              first_number(database,
                           "SELECT 1 FROM run_output WHERE path = ?1 AND run = ?2"
                           " AND status <> 'deleted' AND stream = 0",
                           path, run.id));
    if (was_left != 0) left.remove(path);
  }
  if (left.empty()) return std::nullopt;
  hash::Hasher hasher;
  for (const auto& paths : {read.value(), left.value()}) {
    hasher.update(std::as_bytes(std::span(paths)));
  }
  return hasher.finish();
}

base::Result<std::int64_t> repeated_stage(Database& database, const RunRecord& run,
                                          const std::optional<hash::Digest>& files) {
  if (run.repeats != 0) {
    ASSAY_TRY(const std::int64_t asked,
              first_number(database, "SELECT number FROM stage WHERE number = ?1", run.repeats));
    if (asked != 0) return asked;
  }
  if (!run.name.empty()) {
    ASSAY_TRY(const std::int64_t named,
              first_number(database,
                           "SELECT stage FROM run WHERE name = ?1 AND directory = ?2 AND id <> ?3"
                           " AND stage IS NOT NULL ORDER BY id DESC LIMIT 1",
                           run.name, run.directory, run.id));
    if (named != 0) return named;
  }
  ASSAY_TRY(const std::int64_t commanded, same_command(database, run));
  if (commanded != 0 || !files) return commanded;
  return same_files(database, run, *files);
}

}  // namespace assay::store
