// MappedFile: a memory-mapped file that is safe to read even if the file shrinks.
//
// Reading a mapped page whose file was truncated, or whose disk fails, raises SIGBUS. A handler,
// installed on first use, recognises addresses inside a MappedFile, maps zeros there and sets a
// flag, which the reader checks afterwards (damaged()). Any other SIGBUS goes to the handler that
// was installed before.
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
  // Nothing where mapping is impossible or not safe: the file system does not support it, all slots
  // are in use, or another library has replaced the signal handler.
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

// A SIGBUS kills the process if the thread has blocked the signal, so readers of a MappedFile
// unblock it while they read.
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
