#include "train/checkpoint/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/clock.h"
#include "base/file.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/output_file.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostManifestBytes = std::int64_t{64} << 20;
// Non-blocking, so that a pipe or terminal of that name is refused instead of waited for.
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

base::Result<base::UniqueFd> open_in(int folder, const fs::path& path) {
  const std::string name = path.filename().string();
  base::UniqueFd fd(::openat(folder, name.c_str(), kReadFlags));
  if (!fd.valid()) {
    if (errno == ENOENT) return base::fail(base::failed_error(path.string(), "is missing"));
    return base::fail(base::system_error(path.string(), "cannot open", errno));
  }
  ASSAY_TRY_VOID(base::regular_status(fd.get(), path.string()));
  return fd;
}

}  // namespace

base::Result<ReadLock> ReadLock::take(const fs::path& folder) {
  base::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return base::fail(base::usage_error(folder.string(), "no such checkpoint"));
    }
    return base::fail(base::system_error(folder.string(), "cannot open", errno));
  }
  ASSAY_TRY(base::UniqueFd manifest, open_in(fd.get(), folder / kManifestName));
  if (::flock(manifest.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return base::fail(base::failed_error(folder.string(), "is being removed"));
  }
  // Removal takes the lock first, so a manifest that still has a name is not being removed.
  struct stat status {};
  if (::fstat(manifest.get(), &status) != 0 || status.st_nlink == 0) {
    return base::fail(base::failed_error(folder.string(), "is being removed"));
  }
  return ReadLock(folder, std::move(fd), std::move(manifest));
}

base::Result<base::UniqueFd> ReadLock::open(const std::string& name) const {
  return open_in(folder_.get(), path_ / name);
}

base::Result<std::string> ReadLock::manifest() const {
  const std::string where = (path_ / kManifestName).string();
  ASSAY_TRY(const struct stat status, base::regular_status(manifest_.get(), where));
  if (status.st_size > kMostManifestBytes) {
    return base::fail(base::failed_error(where, "is too large to be a manifest"));
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  ASSAY_TRY(const std::size_t size,
            base::read_at(manifest_.get(), where, 0, std::as_writable_bytes(std::span(text))));
  text.resize(size);
  return text;
}

base::Result<std::int64_t> ReadLock::written_unix_ns() const {
  ASSAY_TRY(const struct stat status,
            base::regular_status(manifest_.get(), (path_ / kManifestName).string()));
  return base::nanoseconds(status.st_mtim);
}

base::Result<RemovalLock> RemovalLock::take(const fs::path& folder) {
  RemovalLock lock;
  const fs::path path = folder / kManifestName;
  // Network file systems grant an exclusive lock only on files opened for writing.
  lock.manifest_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!lock.manifest_.valid()) {
    // Without a manifest it is not a checkpoint and has no readers.
    if (errno == ENOENT || errno == ENOTDIR || errno == EISDIR || errno == ENXIO) return lock;
    return base::fail(file_error(path.string(), "cannot lock", errno));
  }
  lock.in_use_ = ::flock(lock.manifest_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return lock;
}

}  // namespace assay::checkpoint
