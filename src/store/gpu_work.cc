#include "store/gpu_work.h"

#include "store/statement.h"

namespace assay::store {

base::Result<void> insert_gpu_work(Database& database, std::int64_t run, const GpuWork& work) {
  for (const char* table : {"gpu_use", "gpu_memory", "gpu_collective", "gpu_share"}) {
    ASSAY_TRY(Statement clear,
              database.prepare(std::string("DELETE FROM ") + table + " WHERE run = ?1"));
    ASSAY_TRY_VOID(clear.bind(run));
    ASSAY_TRY_VOID(clear.run());
  }
  ASSAY_TRY(Statement use, database.prepare("INSERT INTO gpu_use (run, number, quantity, calls,"
                                            " amount) VALUES (?1, ?2, ?3, ?4, ?5)"));
  std::int64_t number = 0;
  for (const GpuUse& one : work.use) {
    ASSAY_TRY_VOID(use.bind(run, ++number, one.quantity, one.calls, one.amount));
    ASSAY_TRY_VOID(use.run());
  }
  ASSAY_TRY(Statement memory,
            database.prepare("INSERT OR REPLACE INTO gpu_memory (run, device, peak_bytes)"
                             " VALUES (?1, ?2, ?3)"));
  for (const GpuMemory& one : work.memory) {
    ASSAY_TRY_VOID(memory.bind(run, one.device, one.peak_bytes));
    ASSAY_TRY_VOID(memory.run());
  }
  ASSAY_TRY(Statement collective,
            database.prepare("INSERT OR REPLACE INTO gpu_collective (run, communicator, ranks,"
                             " operation, type, calls, bytes)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"));
  for (const GpuCollectiveUse& one : work.collectives) {
    ASSAY_TRY_VOID(collective.bind(run, one.communicator, one.ranks, one.operation, one.type,
                                   one.calls, one.bytes));
    ASSAY_TRY_VOID(collective.run());
  }
  ASSAY_TRY(Statement share,
            database.prepare("INSERT OR REPLACE INTO gpu_share (run, device, memory_bytes,"
                             " share_thousandths, priority, borrow, busy_ns, waited_ns)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"));
  for (const GpuShareUse& one : work.shares) {
    ASSAY_TRY_VOID(share.bind(run, one.device, one.memory_bytes, one.share_thousandths,
                              one.priority, one.borrow, one.busy_ns, one.waited_ns));
    ASSAY_TRY_VOID(share.run());
  }
  return {};
}

base::Result<GpuWork> gpu_work_of(Database& database, std::int64_t run) {
  GpuWork work;
  ASSAY_TRY(Statement use, database.prepare("SELECT quantity, calls, amount FROM gpu_use"
                                            " WHERE run = ?1 ORDER BY number"));
  ASSAY_TRY_VOID(use.bind(run));
  ASSAY_TRY_VOID(use.each([&](const Statement& row) {
    work.use.push_back({row.text(0), row.integer(1), row.integer(2)});
  }));
  ASSAY_TRY(Statement memory, database.prepare("SELECT device, peak_bytes FROM gpu_memory"
                                               " WHERE run = ?1 ORDER BY device"));
  ASSAY_TRY_VOID(memory.bind(run));
  ASSAY_TRY_VOID(memory.each([&](const Statement& row) {
    work.memory.push_back({row.text(0), row.integer(1)});
  }));
  ASSAY_TRY(Statement collectives,
            database.prepare("SELECT communicator, ranks, operation, type, calls, bytes"
                             " FROM gpu_collective WHERE run = ?1"
                             " ORDER BY communicator, operation, type"));
  ASSAY_TRY_VOID(collectives.bind(run));
  ASSAY_TRY_VOID(collectives.each([&](const Statement& row) {
    work.collectives.push_back(
        {row.text(0), row.integer(1), row.text(2), row.text(3), row.integer(4), row.integer(5)});
  }));
  ASSAY_TRY(Statement shares,
            database.prepare("SELECT device, memory_bytes, share_thousandths, priority, borrow,"
                             " busy_ns, waited_ns FROM gpu_share WHERE run = ?1 ORDER BY device"));
  ASSAY_TRY_VOID(shares.bind(run));
  ASSAY_TRY_VOID(shares.each([&](const Statement& row) {
    GpuShareUse share{.device = row.text(0)};
    if (!row.is_null(1)) share.memory_bytes = row.integer(1);
    if (!row.is_null(2)) share.share_thousandths = row.integer(2);
    share.priority = row.text(3);
    share.borrow = row.integer(4) != 0;
    share.busy_ns = row.integer(5);
    share.waited_ns = row.integer(6);
    work.shares.push_back(std::move(share));
  }));
  return work;
}

}  // namespace assay::store
