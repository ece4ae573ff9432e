#include "store/steps.h"

#include <fmt/format.h>

#include "store/job_reader.h"
#include "store/job_row.h"
#include "store/rows.h"
#include "store/step_identity.h"

namespace assay::store {
base::Result<std::int64_t> take_step(Database& database, const Job& job,
                                     const std::optional<hash::Digest>& files) {
  ASSAY_TRY_VOID(leave_step(database, job.id));
  ASSAY_TRY(std::int64_t number, repeated_step(database, job, files));
  if (number == 0) {
    ASSAY_TRY(number, database.integer("SELECT coalesce(max(number), 0) + 1 FROM step"));
  }
  ASSAY_TRY(Statement take, database.prepare("INSERT INTO step (number, job) VALUES (?1, ?2)"
                                             " ON CONFLICT (number) DO UPDATE SET job = ?2"));
  ASSAY_TRY_VOID(take.bind(number, job.id));
  ASSAY_TRY_VOID(take.run());
  ASSAY_TRY(Statement number_job,
            database.prepare("UPDATE job SET step = ?1, files = ?3 WHERE id = ?2"));
  ASSAY_TRY_VOID(number_job.bind(number, job.id, bytes_of(files)));
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
