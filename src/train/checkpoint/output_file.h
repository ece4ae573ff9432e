// OutputFile: a new file written once, front to back, in large pieces straight from the caller's
// memory; hashed while it is written, and on disk when finish() returns.
//
// Writing a checkpoint must not push training data and other files out of the page cache, or leave
// gigabytes of dirty pages for the end: written pages are sent to the disk at once and then dropped
// from the cache.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hash/digest.h"

namespace assay::checkpoint {

// A file as the manifest lists it.
struct FileRecord {
  std::string name;  // within its folder
  std::int64_t bytes = 0;
  hash::Digest blake3;
  bool operator==(const FileRecord&) const = default;
};

// BLAKE3 of a sequence of spans, computed on its own thread while the caller writes the same bytes.
class StreamHash {
 public:
  StreamHash();
  StreamHash(const StreamHash&) = delete;
  StreamHash& operator=(const StreamHash&) = delete;
  // Discards bytes that were not hashed yet.
  ~StreamHash();

  // The bytes are not copied: they must not change until finish() or destruction.
  void add(std::span<const std::byte> data);
  // Waits for all bytes; call once.
  hash::Digest finish();

 private:
  void hash_all();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::span<const std::byte>> waiting_;
  bool complete_ = false;   // no more bytes will be added
  bool abandoned_ = false;  // the result is not needed
  hash::Digest digest_;
  std::thread thread_;
};

class OutputFile {
 public:
  // The file must not exist. `expected_bytes` are preallocated where the file system can, so that a
  // full disk is noticed before gigabytes are written.
  static base::Result<OutputFile> create(const std::filesystem::path& path,
                                         std::int64_t expected_bytes);

  // The bytes are not copied: they must not change until finish() returns.
  base::Result<void> write(std::span<const std::byte> data);
  // Syncs the file and returns its length and digest.
  base::Result<FileRecord> finish();

 private:
  OutputFile(std::filesystem::path path, base::UniqueFd fd)
      : path_(std::move(path)), fd_(std::move(fd)), hash_(std::make_unique<StreamHash>()) {}
  void send_to_disk();

  std::filesystem::path path_;
  base::UniqueFd fd_;
  std::unique_ptr<StreamHash> hash_;
  std::int64_t written_ = 0;
  std::int64_t sent_ = 0;     // writeback started up to here
  std::int64_t dropped_ = 0;  // on disk and dropped from the cache up to here
};

// Writes a whole small file.
base::Result<FileRecord> write_small_file(const std::filesystem::path& path,
                                          const std::string& text);

// Syncs the folder itself: without it, new names are lost in a crash.
base::Result<void> sync_folder(const std::filesystem::path& folder);

// "WHERE: cannot DO: No space left on device; the disk is full: …": a system error with advice.
base::Error file_error(const std::string& where, std::string_view begin_startup_part,
                       int errno_value);

}  // namespace assay::checkpoint
