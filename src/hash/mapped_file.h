// MappedFile: a file's bytes without copying them, safe against files that shrink.
//
// Reading a mapped page whose file was truncated, or whose disk fails, raises SIGBUS. A handler,
// installed on first use, recognises addresses inside a MappedFile, puts zeros where the file was
// and notes that the bytes are not to be trusted; the reader looks at that note afterwards. All
// other SIGBUS go where they went before.
//
// Copying with pread instead costs a fifth of the speed (docs/hash.md), which is why this exists.
#pragma once

#include <csignal>
#include <cstddef>
#include <optional>
#include <span>

namespace assay::hash {

class MappedFile {
 public:
  // Nothing where mapping is impossible or not safe: the file system cannot, all slots are taken,
  // or another library has replaced the signal handler.
  static std::optional<MappedFile> map(int fd, std::size_t size);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // Some bytes read so far may have been zeros in place of the file's.
  [[nodiscard]] bool damaged() const;

 private:
  MappedFile(std::span<const std::byte> bytes, std::size_t slot) : bytes_(bytes), slot_(slot) {}

  std::span<const std::byte> bytes_;
  std::size_t slot_;
};

// A thread that blocks SIGBUS is killed by one: readers of a MappedFile unblock it for as long as
// they read.
class SigbusUnblocked {
 public:
  SigbusUnblocked();
  SigbusUnblocked(const SigbusUnblocked&) = delete;
  SigbusUnblocked& operator=(const SigbusUnblocked&) = delete;
  ~SigbusUnblocked();

 private:
  sigset_t before_;
};

}  // namespace assay::hash
