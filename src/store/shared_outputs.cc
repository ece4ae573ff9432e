#include "store/shared_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/host_name.h"
#include "store/column_encoding.h"
#include "store/run_reader.h"
#include "store/streams.h"

namespace assay::store {
namespace {

// Another run that may have overlapped.
struct Other {
  RunId id = 0;
  std::int64_t outputs = 0;
  std::vector<std::string> redirects;
};

// Runs that overlapped this one, have ended and have outputs.
base::Result<std::vector<Other>> ended_with_outputs(Database& database, RunId run,
                                                    const std::vector<RunId>& earlier) {
  std::vector<Other> others;
  const auto add = [&](const Statement& row) {
    others.push_back({row.integer(0), row.integer(1), strings_at(row, 2)});
  };
  ASSAY_TRY(Statement later, database.prepare("SELECT id, outputs, redirects FROM run WHERE id > ?1"
                                              " AND outputs > 0 AND status <> 'running'"));
  ASSAY_TRY_VOID(later.bind(run));
  ASSAY_TRY_VOID(later.each(add));
  ASSAY_TRY(Statement one, database.prepare("SELECT id, outputs, redirects FROM run WHERE id = ?1"
                                            " AND outputs > 0 AND status <> 'running'"));
  for (const RunId id : earlier) {
    if (id >= run) continue;
    ASSAY_TRY_VOID(one.bind(id));
    ASSAY_TRY_VOID(one.each(add));
  }
  return others;
}

// Reads the smaller run's outputs and looks each up among the other's.
base::Result<std::vector<std::string>> written_by_both(Database& database, const Other& a,
                                                       const Other& b) {
  std::set<std::string> logs = handed_down_paths(a.redirects);
  logs.merge(handed_down_paths(b.redirects));
  ASSAY_TRY(Statement same,
            database.prepare("SELECT a.path FROM run_output a CROSS JOIN run_output b"
                             " WHERE a.run = ?1 AND b.path = a.path AND b.run = ?2"
                             " AND a.stream = 0 AND b.stream = 0"
                             " AND a.status <> 'deleted' AND b.status <> 'deleted'"));
  const bool swap = a.outputs > b.outputs;
  ASSAY_TRY_VOID(same.bind(swap ? b.id : a.id, swap ? a.id : b.id));
  std::vector<std::string> paths;
  ASSAY_TRY_VOID(same.each([&](const Statement& row) {
    if (!logs.contains(row.text(0))) paths.push_back(row.text(0));
  }));
  std::sort(paths.begin(), paths.end());
  return paths;
}

Missed also_written_by(const std::vector<std::string>& paths, RunId other) {
  const std::string more = paths.size() > 1 ? fmt::format(" and {} more", paths.size() - 1) : "";
  return {
      "changed",
      fmt::format("{}{} was also written by run {}, which ran at the same time; what is recorded "
                  "may be what that run wrote",
                  paths.front(), more, other)};
}

base::Result<void> add_to(Database& database, RunId run, const Missed& missed) {
  ASSAY_TRY(Statement insert,
            database.prepare("INSERT INTO missed (run, number, what, text) SELECT ?1,"
                             " coalesce(max(number), 0) + 1, ?2, ?3 FROM missed WHERE run = ?1"));
  ASSAY_TRY_VOID(insert.bind(run, missed.what, missed.text));
  ASSAY_TRY_VOID(insert.run());
  ASSAY_TRY(Statement update, database.prepare("UPDATE run SET complete = 0 WHERE id = ?1"));
  ASSAY_TRY_VOID(update.bind(run));
  return update.run();
}

}  // namespace

base::Result<std::vector<RunId>> overlapping_runs(Store& store, RunId run) {
  std::vector<RunId> runs;
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT id, collector_pid, collector_start_ticks, host"
                                     " FROM run WHERE status = 'running' AND id <> ?1"));
  ASSAY_TRY_VOID(select.bind(run));
  const std::string here = base::host_name();
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    const bool elsewhere = row.text(3) != here;
    if (elsewhere || is_alive(row.integer(1), row.integer(2))) runs.push_back(row.integer(0));
  }));
  return runs;
}

base::Result<std::vector<Missed>> note_shared_outputs(Database& database, const RunRecord& run,
                                                      const std::vector<RunId>& earlier) {
  std::vector<Missed> missed;
  ASSAY_TRY(const std::vector<Other> others, ended_with_outputs(database, run.id, earlier));
  if (others.empty()) return missed;
  ASSAY_TRY(Statement count, database.prepare("SELECT count(*) FROM run_output WHERE run = ?1"));
  ASSAY_TRY_VOID(count.bind(run.id));
  ASSAY_TRY(const bool row, count.next_row());
  const Other self{run.id, row ? count.integer(0) : 0, run.redirects};
  for (const Other& other : others) {
    ASSAY_TRY(const std::vector<std::string> paths, written_by_both(database, self, other));
    if (paths.empty()) continue;
    missed.push_back(also_written_by(paths, other.id));
    ASSAY_TRY_VOID(add_to(database, other.id, also_written_by(paths, run.id)));
  }
  return missed;
}

}  // namespace assay::store
