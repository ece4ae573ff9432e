#include "store/ranks.h"

#include "base/statistics.h"
#include "store/run_row.h"

namespace assay::store {
namespace {

base::Result<void> insert_ranks(Database& database, const std::string& run_uid,
                                std::span<const RankRecord> ranks) {
  ASSAY_TRY(const RunId run, run_with_uid(database, run_uid));
  ASSAY_TRY(Statement insert,
            database.prepare("INSERT OR REPLACE INTO run_rank (run, rank, host, place, step, steps,"
                             " step_s, wait_s, last_step_s, last_wait_s, planned_bytes,"
                             " memory_bytes, host_bytes)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"));
  for (const RankRecord& rank : ranks) {
    ASSAY_TRY_VOID(insert.bind(run, rank.rank, rank.host, rank.place, rank.step, rank.steps,
                               rank.step_s, rank.wait_s, rank.last_step_s, rank.last_wait_s,
                               rank.planned_bytes, rank.memory_bytes, rank.host_bytes));
    ASSAY_TRY_VOID(insert.run());
  }
  return {};
}

std::optional<double> real_or_nothing(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return row.real(column);
}

}  // namespace

base::Result<bool> write_ranks(Store& store, const std::string& run_uid,
                               std::span<const RankRecord> ranks) {
  Database& database = store.database();
  return write_unless_busy(database, [&] { return insert_ranks(database, run_uid, ranks); });
}

base::Result<std::vector<RankRecord>> load_ranks(Store& store, RunId run) {
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT rank, host, place, step, steps, step_s, wait_s,"
                                     " last_step_s, last_wait_s, planned_bytes, memory_bytes,"
                                     " host_bytes FROM run_rank WHERE run = ?1 ORDER BY rank"));
  ASSAY_TRY_VOID(select.bind(run));
  std::vector<RankRecord> ranks;
  for (;;) {
    ASSAY_TRY(const bool found, select.next_row());
    if (!found) return ranks;
    ranks.push_back({.rank = select.integer(0),
                     .host = select.text(1),
                     .place = select.text(2),
                     .step = select.integer(3),
                     .steps = select.integer(4),
                     .step_s = select.real(5),
                     .wait_s = real_or_nothing(select, 6),
                     .last_step_s = select.real(7),
                     .last_wait_s = real_or_nothing(select, 8),
                     .planned_bytes = select.integer(9),
                     .memory_bytes = select.integer(10),
                     .host_bytes = select.integer(11)});
  }
}

std::optional<SlowestRank> slowest_of(std::span<const RankRecord> ranks) {
  std::vector<double> all;
  SlowestRank slowest;
  for (const RankRecord& rank : ranks) {
    const auto busy = rank.mean_busy_s();
    if (!busy) return std::nullopt;
    if (all.empty() || *busy > slowest.busy_s) {
      slowest.rank = rank.rank;
      slowest.busy_s = *busy;
    }
    all.push_back(*busy);
  }
  if (all.size() < 2) return std::nullopt;
  slowest.median_busy_s = base::median(all);
  return slowest;
}

}  // namespace assay::store
