#include "observe/shim/created_file.h"

#include <sys/syscall.h>

#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

struct CreatedFile {
  std::uint64_t device;
  std::uint64_t inode;  // 0: none
  std::uint64_t epoch;
};
thread_local constinit CreatedFile created{};

std::uint64_t epoch() {
  return shim.header->epoch.load(std::memory_order_acquire);
}

}  // namespace

// A signal handler may create a file in between. The inode is written last and cleared first, so
// that at worst nothing is remembered.
void remember_created(const struct stat& status) {
  created.inode = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  created.device = status.st_dev;
  created.epoch = epoch();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  created.inode = status.st_ino;
}

bool is_last_created(int file) {
  if (created.inode == 0 || created.epoch != epoch()) return false;
  struct stat status;
  return gate_call(SYS_fstat, file, &status) == 0 && status.st_ino == created.inode &&
         status.st_dev == created.device;
}

}  // namespace assay::shim
