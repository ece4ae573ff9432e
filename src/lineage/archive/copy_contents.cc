#include "lineage/archive/copy_contents.h"

#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/file.h"
#include "base/folders.h"
#include "base/units.h"

namespace assay::lineage {
namespace {

// Lets the kernel copy, or copies in user space where the kernel cannot between these files.
base::Result<void> copy_bytes(int from, int to, const std::string& where) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  constexpr std::size_t kKernelPiece = std::size_t{1} << 30;
  while (true) {
    const ssize_t copied = ::copy_file_range(from, nullptr, to, nullptr, kKernelPiece, 0);
    if (copied > 0) continue;
    if (copied == 0) return {};
    if (errno == EINTR) continue;
    if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
      return base::fail(base::system_error(where, "cannot be written", errno));
    }
    break;
  }
  std::vector<char> piece(kPiece);
  while (true) {
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::fail(base::system_error(where, "its source cannot be read", errno));
    if (got == 0) return {};
    if (!base::write_all(to, {piece.data(), static_cast<std::size_t>(got)})) {
      return base::fail(base::system_error(where, "cannot be written", errno));
    }
  }
}

}  // namespace

bool share_contents(int from, int to) {
  return ::ioctl(to, FICLONE, from) == 0;
}

base::Result<Sharing> copy_contents(int from, int to, const std::string& where) {
  if (share_contents(from, to)) return Sharing::kShared;
  struct stat status {};
  if (::fstat(from, &status) != 0) {
    return base::fail(base::system_error(where, "its source cannot be read", errno));
  }
  ASSAY_TRY_VOID(
      base::check_free_space(base::free_space(to, where), base::Bytes(status.st_size), where));
  ASSAY_TRY_VOID(copy_bytes(from, to, where));
  return Sharing::kCopied;
}

}  // namespace assay::lineage
