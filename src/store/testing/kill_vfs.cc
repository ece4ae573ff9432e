#include "store/testing/kill_vfs.h"

#include <sqlite3.h>

#include <csignal>
#include <cstdint>

namespace assay::store::testing {
namespace {

struct File {
  sqlite3_file base;  // first, because SQLite sees only this
};

std::int64_t g_operations_left = 0;
KillPoint g_death = KillPoint::kBefore;
sqlite3_vfs* g_real_vfs = nullptr;
sqlite3_vfs g_vfs;

// SQLite allocates szOsFile bytes: ours, then the real file's.
sqlite3_file* real(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<File*>(file) + 1);
}

bool is_last() {
  return --g_operations_left == 0;
}

// Runs one counted operation, dying before or after it when it is the chosen one.
template <class Operation>
auto counted(const Operation& operation) {
  const bool last = is_last();
  if (last && g_death == KillPoint::kBefore) ::raise(SIGKILL);
  const auto result = operation();
  if (last) ::raise(SIGKILL);
  return result;
}

// Calls the same method of the real file.
template <auto kMethod>
struct Forward;
template <class R, class... Args, R (*sqlite3_io_methods::*kMethod)(sqlite3_file*, Args...)>
struct Forward<kMethod> {
  static R call(sqlite3_file* file, Args... args) {
    return (real(file)->pMethods->*kMethod)(real(file), args...);
  }
  static R count(sqlite3_file* file, Args... args) {
    return counted([&] { return call(file, args...); });
  }
};

int write_file(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  const auto& write = Forward<&sqlite3_io_methods::xWrite>::call;
  const bool last = is_last();
  if (last && g_death == KillPoint::kHalfWay) write(file, data, size / 2, offset);
  if (last) ::raise(SIGKILL);
  return write(file, data, size, offset);
}

int sync_file(sqlite3_file*, int) {
  return counted([] { return SQLITE_OK; });
}

void barrier(sqlite3_file* file) {
  counted([&] {
    Forward<&sqlite3_io_methods::xShmBarrier>::call(file);
    return 0;
  });
}

using M = sqlite3_io_methods;
sqlite3_io_methods g_methods = {
    3,
    Forward<&M::xClose>::call,
    Forward<&M::xRead>::call,
    write_file,
    Forward<&M::xTruncate>::count,
    sync_file,
    Forward<&M::xFileSize>::call,
    Forward<&M::xLock>::call,
    Forward<&M::xUnlock>::call,
    Forward<&M::xCheckReservedLock>::call,
    Forward<&M::xFileControl>::call,
    Forward<&M::xSectorSize>::call,
    Forward<&M::xDeviceCharacteristics>::call,
    Forward<&M::xShmMap>::count,
    Forward<&M::xShmLock>::count,
    barrier,
    Forward<&M::xShmUnmap>::count,
    Forward<&M::xFetch>::call,
    Forward<&M::xUnfetch>::call,
};

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  const int code =
      counted([&] { return g_real_vfs->xOpen(g_real_vfs, name, real(file), flags, out_flags); });
  if (real(file)->pMethods != nullptr) file->pMethods = &g_methods;
  return code;
}

int delete_file(sqlite3_vfs*, const char* name, int sync_directory) {
  return counted([&] { return g_real_vfs->xDelete(g_real_vfs, name, sync_directory); });
}

}  // namespace

KillVfs::KillVfs(bool with_shared_memory) {
  g_operations_left = 0;  // counts down from here without ever reaching zero again
  g_methods.iVersion = with_shared_memory ? 3 : 1;
  g_real_vfs = sqlite3_vfs_find(nullptr);
  g_vfs = *g_real_vfs;
  g_vfs.zName = "assay-kill";
  g_vfs.szOsFile += static_cast<int>(sizeof(File));
  g_vfs.xOpen = open_file;
  g_vfs.xDelete = delete_file;
  sqlite3_vfs_register(&g_vfs, 1);
}

KillVfs::~KillVfs() {
  sqlite3_vfs_unregister(&g_vfs);
  sqlite3_vfs_register(g_real_vfs, 1);
}

void KillVfs::kill_at(int nth, KillPoint death) {
  g_operations_left = nth;
  g_death = death;
}

}  // namespace assay::store::testing
