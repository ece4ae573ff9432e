// An SQLite VFS (file layer) that kills the process at a chosen operation.
//
// It wraps the real one and counts everything that changes a file or the shared index of the
// write-ahead log: writes, truncations, syncs, deletions, openings, shared-memory maps, locks and
// barriers. Repeating a test with a kill at each operation in turn covers every state that a killed
// process can leave behind. Syncs are counted but not done: a kill, unlike a power loss, does not
// need them.
#pragma once

namespace assay::store::testing {

enum class KillPoint {
  kBefore,   // the operation did not happen
  kHalfWay,  // half of the bytes were written; other operations happened
};

// While it lives it is this process's default VFS; forks inherit it. One at a time.
class KillVfs {
 public:
  // Without shared memory, as on some file systems, SQLite cannot keep a write-ahead log.
  explicit KillVfs(bool with_shared_memory);
  KillVfs(const KillVfs&) = delete;
  KillVfs& operator=(const KillVfs&) = delete;
  ~KillVfs();

  // From here on: the nth operation kills this process. Only in a child.
  static void kill_at(int nth, KillPoint death);
};

}  // namespace assay::store::testing
