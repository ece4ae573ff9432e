#include "store/cleaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "store/artifacts.h"
#include "store/column_encoding.h"
#include "store/hash_cache.h"
#include "store/input_lists.h"
#include "store/labels.h"
#include "store/run_dependencies.h"
#include "store/run_reader.h"
#include "store/run_row.h"
#include "store/stages.h"

namespace assay::store {
namespace {

// Inside the caller's transaction. The lists go with the row (ON DELETE CASCADE).
base::Result<void> erase(Database& database, RunId id) {
  ASSAY_TRY_VOID(leave_stage(database, id));
  ASSAY_TRY_VOID(erase_own_inputs(database, id));
  ASSAY_TRY(Statement remove, database.prepare("DELETE FROM run WHERE id = ?1"));
  ASSAY_TRY_VOID(remove.bind(id));
  return remove.run();
}

// Adds the newest run that left the present content of a path: without it the file's origin would
// be unknown.
base::Result<void> add_makers_of_files(Store& store, const GcRequest& request,
                                       std::set<RunId>& needed, std::vector<RunId>& todo) {
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT run, path, blake3, size FROM run_output"
                                     " WHERE blake3 IS NOT NULL ORDER BY path, run DESC"));
  std::string settled;  // the path whose maker has been found
  std::set<hash::Digest> seen;
  std::string path;
  return select.each([&](const Statement& row) {
    std::string at = row.text(1);
    if (at == settled) return;
    if (at != path) seen.clear();
    path = std::move(at);
    const auto content = digest_at(row, 2);
    if (!content || !seen.insert(*content).second) return;
    if (!request.on_disk(path, *content, row.integer(3))) return;
    settled = path;
    if (needed.insert(row.integer(0)).second) todo.push_back(row.integer(0));
  });
}

// The runs that must stay, and recursively the runs whose outputs they read.
base::Result<std::set<RunId>> needed_runs(Store& store, const GcRequest& request) {
  ASSAY_TRY(const ReadTransaction snapshot, ReadTransaction::begin(store.database()));
  ASSAY_TRY(Statement select,
            store.database().prepare(
                "SELECT id FROM run WHERE status = 'running' UNION SELECT run FROM stage"
                " UNION SELECT run FROM label WHERE run IS NOT NULL UNION"
                " SELECT o.run FROM label l JOIN run_output o ON"
                " substr(o.blake3, 1, 8) = substr(l.blake3, 1, 8) AND o.blake3 = l.blake3"));
  std::set<RunId> needed;
  std::vector<RunId> todo;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    needed.insert(row.integer(0));
    todo.push_back(row.integer(0));
  }));
  if (request.on_disk) ASSAY_TRY_VOID(add_makers_of_files(store, request, needed, todo));
  ASSAY_TRY(Producers producers, Producers::prepare(store));
  while (!todo.empty()) {
    ASSAY_TRY(const RunRecord reader, head_of(store, todo.back()));
    todo.pop_back();
    ASSAY_TRY(const std::vector<Input> needs, load_dependencies(store, reader.id));
    for (const Input& input : needs) {
      ASSAY_TRY(const auto producer, producers.of(reader, input));
      if (producer && needed.insert(producer->run).second) todo.push_back(producer->run);
    }
  }
  return needed;
}

base::Result<std::int64_t> erase_unreferenced(Database& database, std::string_view sql) {
  ASSAY_TRY_VOID(database.exec(sql));
  return database.changes();
}

constexpr const char* kUnreferencedDocuments =
    "DELETE FROM document WHERE NOT EXISTS (SELECT 1 FROM run WHERE environment = document.id)"
    " AND NOT EXISTS (SELECT 1 FROM run WHERE machine = document.id)"
    " AND NOT EXISTS (SELECT 1 FROM run_git WHERE diff = document.id)"
    " AND NOT EXISTS (SELECT 1 FROM run_rule WHERE paths = document.id)"
    " AND NOT EXISTS (SELECT 1 FROM path_fact WHERE names = document.id)";
constexpr const char* kUnreferencedPackages =
    "DELETE FROM package WHERE NOT EXISTS"
    " (SELECT 1 FROM run_package WHERE package = package.id)";

base::Result<void> erase_leftovers(Database& database, const GcRequest& request, GcReport& report) {
  ASSAY_TRY(report.documents, erase_unreferenced(database, kUnreferencedDocuments));
  ASSAY_TRY(report.packages, erase_unreferenced(database, kUnreferencedPackages));
  ASSAY_TRY_VOID(
      database.exec("DELETE FROM input_list WHERE NOT EXISTS"
                    " (SELECT 1 FROM run_list WHERE list = input_list.id)"));
  ASSAY_TRY(report.hashes, forget_hashes_before(database, request.hashes_before_unix_ns));
  return {};
}

// One transaction per run, so that recorders do not wait long. Each checks again that the run may
// still be removed.
base::Result<void> erase_each(Store& store, std::vector<RunRecord>& runs) {
  Database& database = store.database();
  ASSAY_TRY(Statement in_use,
            database.prepare("SELECT 1 FROM stage WHERE run = ?1 UNION ALL"
                             " SELECT 1 FROM label WHERE run = ?1 UNION ALL"
                             " SELECT 1 FROM run WHERE id = ?1 AND status = 'running' LIMIT 1"));
  for (auto run = runs.begin(); run != runs.end();) {
    ASSAY_TRY(Transaction transaction, Transaction::begin(database));
    ASSAY_TRY_VOID(in_use.bind(run->id));
    ASSAY_TRY(const bool stays, in_use.next_row());
    in_use.reset();
    if (stays) {
      run = runs.erase(run);
      continue;
    }
    ASSAY_TRY_VOID(erase(database, run->id));
    ASSAY_TRY_VOID(transaction.commit());
    ++run;
  }
  return {};
}

std::int64_t size_of(const Store& store) {
  std::error_code error;
  const auto size = std::filesystem::file_size(store.location().database, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

// Rewriting the file is worth it when a quarter of it is empty; another process may prevent it.
base::Result<void> shrink(Store& store) {
  Database& database = store.database();
  ASSAY_TRY(const std::int64_t pages, database.integer("PRAGMA page_count"));
  ASSAY_TRY(const std::int64_t unused, database.integer("PRAGMA freelist_count"));
  if (unused * 4 < pages) return {};
  ASSAY_TRY(Statement running,
            database.prepare("SELECT 1 FROM run WHERE status = 'running' LIMIT 1"));
  ASSAY_TRY(const bool busy, running.next_row());
  running.reset();
  if (busy) return {};  // its recorder would wait while the whole file is copied
  static_cast<void>(database.exec("VACUUM"));
  static_cast<void>(database.exec("PRAGMA wal_checkpoint(TRUNCATE)"));
  return {};
}

}  // namespace

base::Result<void> remove_run(Store& store, RunId id) {
  Database& database = store.database();
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_TRY(const RunRecord run, head_of(store, id));
  if (run.status == RunStatus::kRunning && is_alive(run.collector_pid, run.collector_start_ticks)) {
    return base::fail(
        base::usage_error(fmt::format("run {}", id), "is still running", "end it first, or wait"));
  }
  ASSAY_TRY_VOID(erase(database, id));
  return transaction.commit();
}

base::Result<GcReport> collect_garbage(Store& store, const GcRequest& request) {
  GcReport report;
  report.bytes_before = size_of(store);
  ASSAY_TRY(const std::set<RunId> needed, needed_runs(store, request));
  ASSAY_TRY(report.runs, list_runs(store));
  std::int64_t kept = 0;
  std::erase_if(report.runs, [&](const RunRecord& run) {
    if (needed.contains(run.id) || kept++ < request.keep) return true;
    return request.before_unix_ns && run.started_unix_ns >= *request.before_unix_ns;
  });
  if (request.dry_run) {
    // Does everything and rolls it back, so that a dry run reports exactly what a real one would
    // do.
    ASSAY_TRY(Transaction undone, Transaction::begin(store.database()));
    for (const RunRecord& run : report.runs) ASSAY_TRY_VOID(erase(store.database(), run.id));
    ASSAY_TRY_VOID(erase_leftovers(store.database(), request, report));
  } else {
    ASSAY_TRY_VOID(erase_each(store, report.runs));
    {
      ASSAY_TRY(Transaction transaction, Transaction::begin(store.database()));
      ASSAY_TRY_VOID(erase_leftovers(store.database(), request, report));
      ASSAY_TRY_VOID(transaction.commit());
    }
    ASSAY_TRY_VOID(shrink(store));
  }
  for (const RunRecord& run : report.runs) report.files += run.input_count + run.output_count;
  report.bytes_after = size_of(store);
  return report;
}

}  // namespace assay::store
