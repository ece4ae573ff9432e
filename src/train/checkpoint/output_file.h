// OutputFile: a new file that is written once, from front to back, in large pieces straight from
// the caller's memory, hashed meanwhile, and on the disk when finish() returns.
//
// A checkpoint is larger than what the page cache should hold of it: what has been written is sent
// to the disk at once and dropped from the cache behind the writer, so that neither the training
// data nor the machine's other files are pushed out, and no gigabytes of dirty pages wait at the
// end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hash/digest.h"
#include "train/checkpoint/stream_hash.h"

namespace assay::checkpoint {

// What a manifest says of a file.
struct FileRecord {
  std::string name;  // inside its folder
  std::int64_t bytes = 0;
  hash::Digest blake3;
  bool operator==(const FileRecord&) const = default;
};

class OutputFile {
 public:
  // There must be no such file yet. Room for `expected_bytes` is taken first, where the file system
  // can, so that a full disk is noticed before gigabytes were written.
  static base::Result<OutputFile> create(const std::filesystem::path& path,
                                         std::int64_t expected_bytes);

  // The bytes are not copied: they stay as they are until finish() returns.
  base::Result<void> write(std::span<const std::byte> data);
  // On the disk, with its length and digest.
  base::Result<FileRecord> finish();

 private:
  OutputFile(std::filesystem::path path, base::UniqueFd fd)
      : path_(std::move(path)), fd_(std::move(fd)), hash_(std::make_unique<StreamHash>()) {}
  void send_to_disk();

  std::filesystem::path path_;
  base::UniqueFd fd_;
  std::unique_ptr<StreamHash> hash_;
  std::int64_t written_ = 0;
  std::int64_t sent_ = 0;     // writing to the disk was begun up to here
  std::int64_t dropped_ = 0;  // on the disk and out of the cache up to here
};

// A whole small file: text that no memory has to be kept for.
base::Result<FileRecord> write_small_file(const std::filesystem::path& path,
                                          const std::string& text);

// What a folder holds is on the disk as well: names are lost in a crash otherwise.
base::Result<void> sync_folder(const std::filesystem::path& folder);

}  // namespace assay::checkpoint
