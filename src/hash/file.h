// BLAKE3 of a file, computed by several threads that read each byte once; equal to what b3sum
// prints.
//
// The file may be written, truncated or removed meanwhile: that is reported, never a crash.
#pragma once

#include <sys/stat.h>

#include <compare>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "hash/digest.h"
#include "hash/kernel.h"

namespace assay::hash {

// Identifies one state of a file, as far as the file system can.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  auto operator<=>(const FileStamp&) const = default;
};

FileStamp stamp_of(const struct stat& status);

struct FileDigest {
  Digest digest;
  base::Bytes size;  // how many bytes were hashed
  // The file as it was before the first byte was read.
  FileStamp stamp;
  // The stamp was different after the last byte was read, or fewer bytes than the file's size could
  // be read. The digest covers the bytes that were read, which may never have been the file's
  // content at any one time.
  bool changed = false;
};

enum class ReadMethod {
  kMapped,  // through a memory map where possible, else with pread
  kCopied,  // with pread
};

struct HashOptions {
  unsigned threads = 0;  // 0: as many as this process may use
  // Called with the number of bytes just hashed, by several threads at once; must not throw. When
  // the file changes, the sum may exceed its size. base::Progress::advance fits.
  std::function<void(std::int64_t)> progress = {};
  std::stop_token stop = {};  // checked about every MiB; stopping is an error
  ReadMethod reading = ReadMethod::kMapped;
  const Kernel* kernel = &best_kernel();
};

// Regular files only; anything else (a FIFO, a device) is refused without blocking.
base::Result<FileDigest> hash_file(const std::filesystem::path& path,
                                   const HashOptions& options = {});
// The same for an open file, from its beginning; its file offset is neither used nor changed.
// Errors name `where`.
base::Result<FileDigest> hash_file(int fd, const std::string& where,
                                   const HashOptions& options = {});
// The same for a regular file whose stamp the caller has just read from `fd`.
base::Result<FileDigest> hash_file(int fd, const std::string& where, const FileStamp& stamp,
                                   const HashOptions& options);

}  // namespace assay::hash
