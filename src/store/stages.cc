#include "store/stages.h"

#include <fmt/format.h>

#include "store/column_encoding.h"
#include "store/run_reader.h"
#include "store/run_row.h"
#include "store/stage_identity.h"

namespace assay::store {
base::Result<std::int64_t> take_stage(Database& database, const RunRecord& run,
                                      const std::optional<hash::Digest>& files) {
  ASSAY_TRY_VOID(leave_stage(database, run.id));
  ASSAY_TRY(std::int64_t number, repeated_stage(database, run, files));
  if (number == 0) {
    ASSAY_TRY(number, database.integer("SELECT coalesce(max(number), 0) + 1 FROM stage"));
  }
  ASSAY_TRY(Statement take, database.prepare("INSERT INTO stage (number, run) VALUES (?1, ?2)"
                                             " ON CONFLICT (number) DO UPDATE SET run = ?2"));
  ASSAY_TRY_VOID(take.bind(number, run.id));
  ASSAY_TRY_VOID(take.run());
  ASSAY_TRY(Statement number_run,
            database.prepare("UPDATE run SET stage = ?1, files = ?3 WHERE id = ?2"));
  ASSAY_TRY_VOID(number_run.bind(number, run.id, bytes_of(files)));
  ASSAY_TRY_VOID(number_run.run());
  return number;
}

base::Result<void> leave_stage(Database& database, RunId run) {
  // In this order, so that foreign keys always hold.
  for (const char* sql :
       {"UPDATE stage SET run = coalesce((SELECT max(j.id) FROM run j WHERE j.stage = stage.number"
        " AND j.id <> ?1), run) WHERE run = ?1",
        "UPDATE run SET stage = NULL WHERE id = ?1", "DELETE FROM stage WHERE run = ?1"}) {
    ASSAY_TRY(Statement statement, database.prepare(sql));
    ASSAY_TRY_VOID(statement.bind(run));
    ASSAY_TRY_VOID(statement.run());
  }
  return {};
}

base::Result<RunRecord> stage_run(Store& store, std::int64_t number) {
  ASSAY_TRY(Statement select, store.database().prepare("SELECT run FROM stage WHERE number = ?1"));
  ASSAY_TRY_VOID(select.bind(number));
  ASSAY_TRY(const bool row, select.next_row());
  if (row) return load_run(store, select.integer(0));
  ASSAY_TRY(const std::int64_t count, store.database().integer("SELECT count(*) FROM stage"));
  return base::fail(
      base::usage_error(fmt::format("@{}", number), "there is no such stage",
                        count == 0 ? "no run has succeeded yet" : "assay status lists the stages"));
}

base::Result<std::vector<RunId>> earlier_runs(Store& store, const RunRecord& run,
                                              std::size_t most) {
  std::vector<RunId> ids;
  if (run.stage == 0) return ids;
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT id FROM run WHERE stage = ?1 AND id < ?2"
                                     " ORDER BY id DESC LIMIT ?3"));
  ASSAY_TRY_VOID(select.bind(run.stage, run.id, static_cast<std::int64_t>(most)));
  ASSAY_TRY_VOID(select.each([&](const Statement& row) { ids.push_back(row.integer(0)); }));
  return ids;
}

base::Result<std::vector<RunRecord>> live_runs(Store& store) {
  ASSAY_TRY(Statement select,
            store.database().prepare(fmt::format(
                "SELECT {} FROM stage JOIN run j ON j.id = stage.run ORDER BY stage.number",
                kRunColumns)));
  return runs_of(select);
}

base::Result<std::map<std::int64_t, RunRecord>> failed_attempts(Store& store) {
  Database& database = store.database();
  ASSAY_TRY(Statement select,
            database.prepare(fmt::format(
                "SELECT {} FROM run j WHERE j.stage IS NULL AND j.status IN ('failed',"
                " 'interrupted') AND j.id > (SELECT min(run) FROM stage) ORDER BY j.id DESC",
                kRunColumns)));
  ASSAY_TRY(std::vector<RunRecord> runs, runs_of(select));
  ASSAY_TRY(const std::vector<RunRecord> current, live_runs(store));
  std::map<std::int64_t, RunId> newest;
  for (const RunRecord& run : current) newest[run.stage] = run.id;
  std::map<std::int64_t, RunRecord> attempts;
  for (RunRecord& run : runs) {
    ASSAY_TRY(const std::int64_t stage, repeated_stage(database, run, std::nullopt));
    if (stage != 0 && run.id > newest[stage]) attempts.emplace(stage, std::move(run));
  }
  return attempts;
}

}  // namespace assay::store
