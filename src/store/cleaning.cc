#include "store/cleaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "store/artifacts.h"
#include "store/job_reader.h"
#include "store/job_row.h"
#include "store/labels.h"
#include "store/needs.h"
#include "store/steps.h"

namespace assay::store {
namespace {

// Inside the caller's transaction. The lists go with the row (ON DELETE CASCADE).
base::Result<void> erase(Database& database, JobId id) {
  ASSAY_TRY_VOID(leave_step(database, id));
  ASSAY_TRY(Statement remove, database.prepare("DELETE FROM job WHERE id = ?1"));
  ASSAY_TRY_VOID(remove.bind(id));
  return remove.run();
}

// The jobs that must stay, and those whose outputs these read, and so on.
base::Result<std::set<JobId>> needed_jobs(Store& store) {
  ASSAY_TRY(const Snapshot snapshot, Snapshot::begin(store.database()));
  ASSAY_TRY(Statement select,
            store.database().prepare(
                "SELECT id FROM job WHERE status = 'running' UNION SELECT job FROM step"
                " UNION SELECT job FROM label WHERE job IS NOT NULL UNION"
                " SELECT o.job FROM label l JOIN job_output o ON"
                " substr(o.blake3, 1, 8) = substr(l.blake3, 1, 8) AND o.blake3 = l.blake3"));
  std::set<JobId> needed;
  std::vector<JobId> todo;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    needed.insert(row.integer(0));
    todo.push_back(row.integer(0));
  }));
  ASSAY_TRY(Producers producers, Producers::prepare(store));
  while (!todo.empty()) {
    ASSAY_TRY(const Job reader, head_of(store, todo.back()));
    todo.pop_back();
    ASSAY_TRY(const std::vector<Input> needs, load_needs(store, reader.id));
    for (const Input& input : needs) {
      ASSAY_TRY(const auto producer, producers.of(reader, input));
      if (producer && needed.insert(producer->job).second) todo.push_back(producer->job);
    }
  }
  return needed;
}

base::Result<std::int64_t> erase_unreferenced(Database& database, std::string_view sql) {
  ASSAY_TRY_VOID(database.exec(sql));
  return database.changes();
}

constexpr const char* kUnreferencedDocuments =
    "DELETE FROM document WHERE NOT EXISTS (SELECT 1 FROM job WHERE environment = document.id)"
    " AND NOT EXISTS (SELECT 1 FROM job WHERE machine = document.id)"
    " AND NOT EXISTS (SELECT 1 FROM job_git WHERE diff = document.id)"
    " AND NOT EXISTS (SELECT 1 FROM job_rule WHERE paths = document.id)";
constexpr const char* kUnreferencedPackages =
    "DELETE FROM package WHERE NOT EXISTS"
    " (SELECT 1 FROM job_package WHERE package = package.id)";

base::Result<void> erase_leftovers(Database& database, const GcOptions& options, GcReport& report) {
  ASSAY_TRY(report.documents, erase_unreferenced(database, kUnreferencedDocuments));
  ASSAY_TRY(report.packages, erase_unreferenced(database, kUnreferencedPackages));
  ASSAY_TRY(Statement forget, database.prepare("DELETE FROM hash_cache WHERE hashed_ns < ?1"));
  ASSAY_TRY_VOID(forget.bind(options.hashes_before_unix_ns));
  ASSAY_TRY_VOID(forget.run());
  report.hashes = database.changes();
  return {};
}

// A transaction for each, so that nobody waits long who wants to record; whatever has changed
// since the jobs were chosen is looked at again.
base::Result<void> erase_each(Store& store, std::vector<Job>& jobs) {
  Database& database = store.database();
  ASSAY_TRY(Statement in_use,
            database.prepare("SELECT 1 FROM step WHERE job = ?1 UNION ALL"
                             " SELECT 1 FROM label WHERE job = ?1 UNION ALL"
                             " SELECT 1 FROM job WHERE id = ?1 AND status = 'running' LIMIT 1"));
  for (auto job = jobs.begin(); job != jobs.end();) {
    ASSAY_TRY(Transaction transaction, Transaction::begin(database));
    ASSAY_TRY_VOID(in_use.bind(job->id));
    ASSAY_TRY(const bool stays, in_use.step());
    in_use.reset();
    if (stays) {
      job = jobs.erase(job);
      continue;
    }
    ASSAY_TRY_VOID(erase(database, job->id));
    ASSAY_TRY_VOID(transaction.commit());
    ++job;
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
            database.prepare("SELECT 1 FROM job WHERE status = 'running' LIMIT 1"));
  ASSAY_TRY(const bool busy, running.step());
  running.reset();
  if (busy) return {};  // it would wait for us to copy the whole file
  static_cast<void>(database.exec("VACUUM"));
  static_cast<void>(database.exec("PRAGMA wal_checkpoint(TRUNCATE)"));
  return {};
}

}  // namespace

base::Result<void> remove_job(Store& store, JobId id) {
  Database& database = store.database();
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_TRY(const Job job, head_of(store, id));
  if (job.status == JobStatus::kRunning && is_alive(job.collector_pid, job.collector_start_ticks)) {
    return base::fail(
        base::usage_error(fmt::format("job {}", id), "is still running", "end it first, or wait"));
  }
  ASSAY_TRY_VOID(erase(database, id));
  return transaction.commit();
}

base::Result<GcReport> collect_garbage(Store& store, const GcOptions& options) {
  GcReport report;
  report.bytes_before = size_of(store);
  ASSAY_TRY(const std::set<JobId> needed, needed_jobs(store));
  ASSAY_TRY(report.jobs, list_jobs(store));
  std::int64_t kept = 0;
  std::erase_if(report.jobs, [&](const Job& job) {
    if (needed.contains(job.id) || kept++ < options.keep) return true;
    return options.before_unix_ns && job.started_unix_ns >= *options.before_unix_ns;
  });
  if (options.dry_run) {
    // Everything, and then back: a dry run says exactly what a real one would do.
    ASSAY_TRY(Transaction undone, Transaction::begin(store.database()));
    for (const Job& job : report.jobs) ASSAY_TRY_VOID(erase(store.database(), job.id));
    ASSAY_TRY_VOID(erase_leftovers(store.database(), options, report));
  } else {
    ASSAY_TRY_VOID(erase_each(store, report.jobs));
    {
      ASSAY_TRY(Transaction transaction, Transaction::begin(store.database()));
      ASSAY_TRY_VOID(erase_leftovers(store.database(), options, report));
      ASSAY_TRY_VOID(transaction.commit());
    }
    ASSAY_TRY_VOID(shrink(store));
  }
  for (const Job& job : report.jobs) report.files += job.input_count + job.output_count;
  report.bytes_after = size_of(store);
  return report;
}

}  // namespace assay::store
