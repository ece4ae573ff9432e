#include "store/plans.h"

#include <fmt/format.h>

#include "store/run_row.h"

namespace assay::store {
namespace {

base::Result<void> insert_plan(Database& database, const std::string& run_uid,
                               const PlanRecord& record) {
  ASSAY_TRY(const RunId run, run_with_uid(database, run_uid));
  ASSAY_TRY(Statement insert,  // unless it has a plan
            database.prepare("INSERT INTO plan (run, planned_ns, job, device, step_s,"
                             " memory_bytes, plan)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
                             " ON CONFLICT DO NOTHING"));
  const std::string plan = record.plan.dump(-1, ' ', false, base::Json::error_handler_t::replace);
  ASSAY_TRY_VOID(insert.bind(run, record.planned_unix_ns, record.job, record.device, record.step_s,
                             record.memory_bytes, plan));
  return insert.run();
}

}  // namespace

base::Result<bool> write_plan(Store& store, const std::string& run_uid, const PlanRecord& record) {
  Database& database = store.database();
  return write_unless_busy(database, [&] { return insert_plan(database, run_uid, record); });
}

base::Result<std::optional<PlanRecord>> load_plan(Store& store, RunId run) {
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT planned_ns, job, device, step_s, memory_bytes, plan"
                                     " FROM plan WHERE run = ?1"));
  ASSAY_TRY_VOID(select.bind(run));
  ASSAY_TRY(const bool found, select.next_row());
  if (!found) return std::nullopt;
  PlanRecord record{
      .planned_unix_ns = select.integer(0), .job = select.text(1), .device = select.text(2)};
  if (!select.is_null(3)) record.step_s = select.real(3);
  if (!select.is_null(4)) record.memory_bytes = select.integer(4);
  record.plan = base::Json::parse(select.text(5), nullptr, false);
  if (record.plan.is_discarded()) {
    return base::fail(base::failed_error(store.database().path().string(),
                                         fmt::format("the plan of run {} is not JSON", run)));
  }
  return record;
}

}  // namespace assay::store
