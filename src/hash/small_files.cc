#include "hash/small_files.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/file.h"

namespace assay::hash {

SmallFiles::SmallFiles(const Kernel& kernel) : kernel_(&kernel), one_chunk_(kernel) {}

base::Result<FileDigest> SmallFiles::add(int fd, const std::string& where, const FileStamp& stamp) {
  alignas(64) std::byte content[kMostBytes];
  const auto size = static_cast<std::size_t>(stamp.size);
  ASSAY_TRY(const std::size_t count, base::read_at(fd, where, 0, std::span(content).first(size)));
  ASSAY_TRY(const struct stat after, base::regular_status(fd, where));
  File& file = files_.emplace_back();
  file.chunks = count <= kChunkBytes ? 0 : count / kChunkBytes;
  for (std::size_t i = 0; i < file.chunks; ++i) {
    Level& level = levels_[i];
    level.chunks.resize(kMost * kChunkBytes);
    file.place[i] = level.count++;
    std::memcpy(level.chunks.data() + file.place[i] * kChunkBytes, content + i * kChunkBytes,
                kChunkBytes);
  }
  file.rest_bytes = count - file.chunks * kChunkBytes;
  std::memcpy(file.rest.data(), content + file.chunks * kChunkBytes, file.rest_bytes);
  return FileDigest{.digest = {},
                    .size = base::Bytes(static_cast<std::int64_t>(count)),
                    .stamp = stamp,
                    .changed = stamp_of(after) != stamp || count < size};
}

std::vector<Digest> SmallFiles::digests() {
  hash_levels();
  std::vector<Digest> digests;
  for (const File& file : files_) digests.push_back(digest_of(file));
  for (Level& level : levels_) level.count = 0;
  files_.clear();
  return digests;
}

void SmallFiles::hash_levels() {
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    Level& level = levels_[i];
    for (std::size_t at = 0; at < level.count; at += kernel_->lanes) {
      const std::size_t now = std::min(kernel_->lanes, level.count - at);
      kernel_->hash_rows({.data = level.chunks.data() + at * kChunkBytes,
                          .stride = kChunkBytes,
                          .blocks = kBlocksPerChunk,
                          .counter = i,
                          .first_flags = kChunkStart,
                          .last_flags = kChunkEnd},
                         now, level.values[at].data());
    }
  }
}

Digest SmallFiles::digest_of(const File& file) {
  std::array<ChainingValue, kMostChunks + 1> values;
  std::size_t count = 0;
  for (; count < file.chunks; ++count) values[count] = levels_[count].values[file.place[count]];
  if (file.rest_bytes > 0 || count == 0) {
    one_chunk_.begin(count, 1);
    one_chunk_.add(std::span(file.rest).first(file.rest_bytes));
    const Node last = one_chunk_.finish();
    if (count == 0) return last.root();
    values[count++] = last.chaining_value();
  }
  return join(*kernel_, std::span(values).first(count)).root();
}

}  // namespace assay::hash
