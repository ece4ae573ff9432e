// Large files are mapped; small ones, and those that cannot be mapped or shrink while they are, are
// copied with pread. Files whose size the kernel does not report (/proc) are read to their end.
#include "hash/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "hash/blake3.h"
#include "hash/mapped_file.h"
#include "hash/segments.h"

namespace assay::hash {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{128}
                                   << 10;  // fits a stack and the second-level cache
constexpr std::size_t kWorthMapping = std::size_t{512} << 10;  // below, copying is quicker
constexpr std::uint64_t kAhead = std::uint64_t{16} << 20;

// Starts reading bytes that will be needed soon, so that the disk works during hashing. That costs
// time even if they are cached, so a non-blocking read of one byte tests that first.
void read_ahead(int fd, std::uint64_t offset, std::size_t length) {
  std::byte byte{};
  const iovec target{&byte, 1};
  const auto from = static_cast<off_t>(offset);
  if (::preadv2(fd, &target, 1, from, RWF_NOWAIT) >= 0 || errno != EAGAIN) return;
  ::posix_fadvise(fd, from, static_cast<off_t>(length), POSIX_FADV_WILLNEED);
}

class Copied : public SegmentSource {
 public:
  Copied(int fd, const std::string& where) : fd_(fd), where_(where) {}

  base::Result<std::size_t> feed(Subtree& subtree, std::uint64_t offset,
                                 std::size_t length) const override {
    read_ahead(fd_, offset + kAhead, length);
    alignas(64) std::byte buffer[kCopyBytes];
    std::size_t done = 0;
    while (done < length) {
      const auto part = std::span(buffer).first(std::min(kCopyBytes, length - done));
      ASSAY_TRY(const std::size_t count, base::read_at(fd_, where_, offset + done, part));
      subtree.add(part.first(count));
      done += count;
      if (count < part.size()) break;
    }
    return done;
  }

 private:
  int fd_;
  const std::string& where_;
};

class Mapped : public SegmentSource {
 public:
  Mapped(int fd, const MappedFile& file) : fd_(fd), file_(file) {}

  base::Result<std::size_t> feed(Subtree& subtree, std::uint64_t offset,
                                 std::size_t length) const override {
    read_ahead(fd_, offset + kAhead, length);
    const auto part = file_.bytes().subspan(offset, length);
    // Maps all pages in one call, which is cheaper than page faults. If it fails, because the file
    // was truncated or the kernel is old, page faults do it.
    ::madvise(const_cast<std::byte*>(part.data()), part.size(), MADV_POPULATE_READ);
    const SigbusUnblocked unblocked;
    subtree.add(part);
    // Each thread drops its pages as it goes; otherwise one thread would drop them all at the end.
    ::madvise(const_cast<std::byte*>(part.data()), part.size(), MADV_DONTNEED);
    // A short segment ends the attempt.
    return file_.damaged() ? 0 : length;
  }

 private:
  int fd_;
  const MappedFile& file_;
};

// For a file with size 0, as files in /proc report whatever they hold. A file that has a size by
// now was really empty and is being written; its new content is not read.
base::Result<Hashed> hash_unsized(int fd, const std::string& where, const HashOptions& options) {
  Hasher hasher(*options.kernel);
  std::vector<std::byte> buffer(kCopyBytes);
  std::uint64_t size = 0;
  while (true) {
    if (options.stop.stop_requested()) return base::fail(base::failed_error({}, "stopped"));
    ASSAY_TRY(const std::size_t count, base::read_at(fd, where, size, buffer));
    ASSAY_TRY(const struct stat status, base::regular_status(fd, where));
    if (count == 0 || status.st_size != 0) return Hashed{hasher.finish(), size};
    hasher.update(std::span(buffer).first(count));
    size += count;
    if (options.progress) options.progress(static_cast<std::int64_t>(count));
  }
}

// Nothing where the file cannot be mapped, or what was read is not what the file held.
base::Result<std::optional<Hashed>> hash_mapped(int fd, const std::string& where,
                                                std::uint64_t size, const SegmentOptions& options) {
  const auto file = MappedFile::map(fd, size);
  if (!file) return std::nullopt;
  ASSAY_TRY(const Hashed hashed, hash_segments(Mapped(fd, *file), size, options));
  // If the file was truncated in the middle of a page, the rest of the page reads as zeros, without
  // a signal.
  ASSAY_TRY(const struct stat after, base::regular_status(fd, where));
  if (file->damaged() || static_cast<std::uint64_t>(after.st_size) < size) return std::nullopt;
  return hashed;
}

// A file of at most kCopyBytes: one read, and none of what prepares for more.
base::Result<Hashed> hash_small(int fd, const std::string& where, std::size_t size,
                                const HashOptions& options) {
  if (options.stop.stop_requested()) return base::fail(base::failed_error({}, "stopped"));
  alignas(64) std::byte buffer[kCopyBytes];
  ASSAY_TRY(const std::size_t count, base::read_at(fd, where, 0, std::span(buffer).first(size)));
  Subtree subtree(*options.kernel);
  subtree.begin(0, (count + kChunkBytes - 1) / kChunkBytes);
  subtree.add(std::span(buffer).first(count));
  if (options.progress && count > 0) options.progress(static_cast<std::int64_t>(count));
  return Hashed{subtree.finish().root(), count};
}

base::Result<Hashed> hash_contents(int fd, const std::string& where, std::uint64_t size,
                                   const HashOptions& options) {
  if (size == 0) return hash_unsized(fd, where, options);
  if (size <= kCopyBytes) return hash_small(fd, where, size, options);
  const SegmentOptions segments{.threads = options.threads,
                                .kernel = options.kernel,
                                .progress = options.progress,
                                .stop = options.stop};
  for (std::uint64_t at = 0; at < std::min(size, kAhead); at += kAhead / 16) {
    read_ahead(fd, at, kAhead / 16);
  }
  if (options.reading == ReadMethod::kMapped && size >= kWorthMapping) {
    ASSAY_TRY(const auto hashed, hash_mapped(fd, where, size, segments));
    if (hashed) return *hashed;
  }
  return hash_segments(Copied(fd, where), size, segments);
}

}  // namespace

FileStamp stamp_of(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = status.st_size,
          .mtime_ns = base::nanoseconds(status.st_mtim),
          .ctime_ns = base::nanoseconds(status.st_ctim)};
}

base::Result<FileDigest> hash_file(int fd, const std::string& where, const HashOptions& options) {
  ASSAY_TRY(const struct stat before, base::regular_status(fd, where));
  return hash_file(fd, where, stamp_of(before), options);
}

base::Result<FileDigest> hash_file(int fd, const std::string& where, const FileStamp& stamp,
                                   const HashOptions& options) try {
  auto hashed = hash_contents(fd, where, static_cast<std::uint64_t>(stamp.size), options);
  if (!hashed) {
    base::Error error = std::move(hashed).error();
    if (error.where.empty()) error.where = where;
    return base::fail(std::move(error));
  }
  ASSAY_TRY(const struct stat after, base::regular_status(fd, where));
  const auto bytes = static_cast<std::int64_t>(hashed->bytes);
  return FileDigest{.digest = hashed->digest,
                    .size = base::Bytes(bytes),
                    .stamp = stamp,
                    .changed = stamp_of(after) != stamp || bytes < stamp.size};
} catch (const std::bad_alloc&) {
  return base::fail(base::unfit_error(where, "there is not enough memory to hash this file"));
}

base::Result<FileDigest> hash_file(const std::filesystem::path& path, const HashOptions& options) {
  ASSAY_TRY(const base::UniqueFd fd, base::open_regular(path));
  return hash_file(fd.get(), path.string(), options);
}

}  // namespace assay::hash
