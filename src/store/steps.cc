#include "store/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "hash/blake3.h"
#include "store/job_reader.h"
#include "store/job_row.h"
#include "store/rows.h"

namespace assay::store {
namespace {

void add_text(hash::Hasher& hasher, std::string_view text) {
  hasher.update(bytes_of(text));
  hasher.update(bytes_of(std::string_view("\0", 1)));
}

hash::Digest identity_of(const Job& job, const PathSet& left) {
  hash::Hasher hasher;
  add_text(hasher, job.directory);
  if (left.empty()) {
    add_text(hasher, "command");
    for (const std::string& word : job.command) add_text(hasher, word);
  } else {
    add_text(hasher, "outputs");
    const auto paths = left.value();
    hasher.update(std::as_bytes(std::span(paths)));
  }
  return hasher.finish();
}

}  // namespace

void PathSet::add(std::string_view path) {
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
  sum_[0] += first * 0xbf58476d1ce4e5b9U;
  sum_[1] += second * 0x94d049bb133111ebU;
  ++count_;
}

base::Result<std::int64_t> take_step(Database& database, const Job& job, const PathSet& left) {
  ASSAY_TRY_VOID(leave_step(database, job.id));
  const hash::Digest identity = identity_of(job, left);
  ASSAY_TRY(Statement take,
            database.prepare("INSERT INTO step (number, identity, job) VALUES"
                             " ((SELECT coalesce(max(number), 0) + 1 FROM step), ?1, ?2)"
                             " ON CONFLICT (identity) DO UPDATE SET job = ?2"
                             " RETURNING number"));
  ASSAY_TRY_VOID(take.bind(identity.bytes, job.id));
  ASSAY_TRY_VOID(take.step());
  const std::int64_t number = take.integer(0);
  ASSAY_TRY_VOID(take.run());
  ASSAY_TRY(Statement number_job, database.prepare("UPDATE job SET step = ?1 WHERE id = ?2"));
  ASSAY_TRY_VOID(number_job.bind(number, job.id));
  ASSAY_TRY_VOID(number_job.run());
  return number;
}

base::Result<void> leave_step(Database& database, JobId job) {
  // In this order, so that no row ever refers to nothing.
  for (const char* sql :
       {"UPDATE step SET job = coalesce((SELECT max(j.id) FROM job j WHERE j.step = step.number"
        " AND j.id <> ?1), job) WHERE job = ?1",
        "UPDATE job SET step = NULL WHERE id = ?1", "DELETE FROM step WHERE job = ?1"}) {
    ASSAY_TRY(Statement statement, database.prepare(sql));
    ASSAY_TRY_VOID(statement.bind(job));
    ASSAY_TRY_VOID(statement.run());
  }
  return {};
}

base::Result<Job> step_job(Store& store, std::int64_t number) {
  ASSAY_TRY(Statement select, store.database().prepare("SELECT job FROM step WHERE number = ?1"));
  ASSAY_TRY_VOID(select.bind(number));
  ASSAY_TRY(const bool row, select.step());
  if (row) return load_job(store, select.integer(0));
  ASSAY_TRY(const std::int64_t count, store.database().integer("SELECT count(*) FROM step"));
  return base::fail(
      base::usage_error(fmt::format("@{}", number), "there is no such step",
                        count == 0 ? "no job has succeeded yet" : "assay status lists the steps"));
}

base::Result<std::vector<Job>> live_jobs(Store& store) {
  ASSAY_TRY(
      Statement select,
      store.database().prepare(fmt::format(
          "SELECT {} FROM step JOIN job j ON j.id = step.job ORDER BY step.number", kJobColumns)));
  return jobs_of(select);
}

}  // namespace assay::store
