// Files named by a user: whatever is at the path, this neither hangs nor runs out of memory,
// and errors name the path.
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "base/suggestion.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace assay::base {
namespace {

Result<std::filesystem::path> write_draft(const std::filesystem::path& path, std::string_view text,
                                          mode_t mode) {
  // Never another's file, nor what a killed process with this number left.
  constexpr int kMostNames = 100;
  UniqueFd file;
  std::string draft;
  for (int i = 0; i < kMostNames && !file.valid(); ++i) {
    draft = fmt::format("{}.{}", path.string(), ::getpid()) + (i > 0 ? fmt::format(".{}", i) : "");
    file =
        UniqueFd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!file.valid() && errno != EEXIST) break;
  }
  if (!file.valid()) return fail(system_error(path.string(), "cannot write", errno));
  // Some file systems report a full disk or quota only when a file is closed.
  if (write_all(file.get(), text) && ::close(file.release()) == 0) return draft;
  const Error error = system_error(path.string(), "cannot write", errno);
  ::unlink(draft.c_str());
  return fail(error);
}

constexpr std::size_t kChunk = 64 * 1024;
constexpr std::size_t kMostNeighbours = 10'000;

// "did you mean 'job.toml'?" from the names beside the missing one.
std::string similar_name(const std::filesystem::path& path) {
  std::error_code error;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator at(folder, error), end;
       !error && at != end && names.size() < kMostNeighbours; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  const auto meant = nearest(path.filename().string(), names);
  if (!meant) return {};
  return fmt::format("did you mean '{}'?", (path.parent_path() / *meant).string());
}

Error open_error(const std::filesystem::path& path, int errno_value) {
  switch (errno_value) {
    case ENOENT:
      return usage_error(path.string(), "no such file", similar_name(path));
    case ENOTDIR:
      return usage_error(path.string(), "a part of this path is not a directory");
    case ENXIO:
      return usage_error(path.string(), "is not a regular file");
    default:
      return system_error(path.string(), "cannot open", errno_value);
  }
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "is a directory";
  if (S_ISFIFO(mode)) return "is a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "is a device";
  return "is not a regular file";
}

// Pipes are opened non-blocking here, and another process may have left standard input
// so.
void wait_readable(int fd) {
  pollfd waited{.fd = fd, .events = POLLIN, .revents = 0};
  ::poll(&waited, 1, -1);
}

// Reads to the end, not to the size that fstat reports: /proc files have 0 and others grow.
Result<std::string> read_all(int fd, const std::string& where, std::size_t expected,
                             std::size_t limit) {
  std::string contents;
  std::size_t size = 0;
  // One byte more than expected, so that the usual file ends with a read of 0 and no regrowth.
  contents.resize(std::min(expected, limit) + 1);
  while (true) {
    if (size == contents.size()) contents.resize(size + std::max(size, kChunk));
    const std::size_t room = std::min(contents.size(), limit + 1) - size;
    const ssize_t count = ::read(fd, contents.data() + size, room);
    if (count == 0) break;
    if (count < 0) {
      const int error = errno;
      if (error == EAGAIN) wait_readable(fd);
      if (error == EINTR || error == EAGAIN) continue;
      return fail(system_error(where, "cannot read", error));
    }
    size += static_cast<std::size_t>(count);
    if (size > limit) {
      return fail(
          usage_error(where, fmt::format("is larger than {}, the limit for this file",
                                         to_text(Bytes(static_cast<std::int64_t>(limit))))));
    }
  }
  contents.resize(size);
  return contents;
}

// Opening a FIFO would wait for its writer, and a terminal could become the controlling one.
Result<UniqueFd> open_path(const std::filesystem::path& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  UniqueFd fd(::open(path.c_str(), kFlags));
  if (!fd.valid()) return fail(open_error(path, errno));
  return fd;
}

Result<struct stat> checked_status(int fd, const std::string& where, Pipes pipes) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return fail(system_error(where, "cannot stat", errno));
  const bool pipe = pipes == Pipes::kRead && S_ISFIFO(status.st_mode);
  if (!S_ISREG(status.st_mode) && !pipe) {
    return fail(usage_error(where, std::string(kind_of(status.st_mode)), "expected a file"));
  }
  return status;
}

Result<std::string> read_path(const std::filesystem::path& path, std::size_t limit, Pipes pipes) {
  const std::string where = path.string();
  ASSAY_TRY(const UniqueFd fd, open_path(path));
  ASSAY_TRY(const struct stat status, checked_status(fd.get(), where, pipes));
  return read_all(fd.get(), where, static_cast<std::size_t>(status.st_size), limit);
}

// Whether a new file can take the place of this one without anybody noticing: links to it, another
// owner and write protection would be lost.
bool is_replaceable(const std::filesystem::path& path, const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_nlink == 1 && status.st_uid == ::geteuid() &&
         ::access(path.c_str(), W_OK) == 0;
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, Bytes limit, Pipes pipes) try {
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(limit.count(), 0));
  if (path.empty()) return fail(usage_error({}, "the path is empty", "expected a file"));
  if (path == "-") return read_all(STDIN_FILENO, "standard input", 0, most);
  return read_path(path, most, pipes);
} catch (const std::bad_alloc&) {
  return fail(unfit_error(path.string(), "is too large for this machine's memory"));
} catch (const std::length_error&) {
  return fail(unfit_error(path.string(), "is too large for this machine's memory"));
}

Result<UniqueFd> open_regular(const std::filesystem::path& path) {
  if (path.empty()) return fail(usage_error({}, "the path is empty", "expected a file"));
  ASSAY_TRY(UniqueFd fd, open_path(path));
  ASSAY_TRY_VOID(regular_status(fd.get(), path.string()));
  return fd;
}

Result<struct stat> regular_status(int fd, const std::string& where) {
  return checked_status(fd, where, Pipes::kRefuse);
}

Result<std::size_t> read_at(int fd, const std::string& where, std::uint64_t offset,
                            std::span<std::byte> data) {
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t count =
        ::pread(fd, data.data() + done, data.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(system_error(where, "cannot read", errno));
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

Result<void> write_file(const std::filesystem::path& path, std::string_view text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid() || !write_all(file.get(), text)) {
    return fail(system_error(path.string(), "cannot write", errno));
  }
  return {};
}

Result<void> replace_file(const std::filesystem::path& path, std::string_view text, mode_t mode) {
  ASSAY_TRY(const std::filesystem::path draft, write_draft(path, text, mode));
  if (::rename(draft.c_str(), path.c_str()) == 0) return {};
  const Error error = system_error(path.string(), "cannot write", errno);
  ::unlink(draft.c_str());
  return fail(error);
}

Result<void> write_output(const std::filesystem::path& path, std::string_view text) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return replace_file(path, text, 0666);
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  if (!is_replaceable(path, status) || ::access(folder.c_str(), W_OK) != 0)
    return write_file(path, text);
  ASSAY_TRY(const std::filesystem::path draft, write_draft(path, text, 0600));
  std::ignore = ::chown(draft.c_str(), static_cast<uid_t>(-1), status.st_gid);
  const bool complete = ::chmod(draft.c_str(), status.st_mode & 07777) == 0 &&
                        ::rename(draft.c_str(), path.c_str()) == 0;
  if (complete) return {};
  // A mount point, say. There is room for the text: the draft had it.
  ::unlink(draft.c_str());
  return write_file(path, text);
}

Result<void> check_output(const std::filesystem::path& path, const std::string& where) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return fail(usage_error(where, "is a folder", "name a file"));
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const bool exists = std::filesystem::exists(path, error);
  if (::access(exists ? path.c_str() : folder.c_str(), exists ? W_OK : W_OK | X_OK) != 0)
    return fail(system_error(where, "cannot be written", errno));
  return {};
}

}  // namespace assay::base
