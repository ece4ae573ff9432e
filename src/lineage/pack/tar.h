// The part of the tar format (POSIX ustar) that a pack needs: regular files of any size with short
// names. Any tar program can read what TarWriter writes; TarReader reads only that.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::lineage {

class TarWriter {
 public:
  // Writes to `fd`; errors name `where`.
  TarWriter(int fd, std::string where) : fd_(fd), where_(std::move(where)) {}

  // Starts a member; its name has at most 100 bytes. Exactly `size` bytes must follow with write().
  base::Result<void> begin(std::string_view name, std::int64_t size);
  base::Result<void> write(std::string_view bytes);
  // A whole member.
  base::Result<void> add(std::string_view name, std::string_view text);
  // After the last member.
  base::Result<void> finish();

 private:
  base::Result<void> put(std::string_view bytes);
  base::Result<void> pad();

  int fd_;
  std::string where_;
  std::int64_t left_ = 0;  // of the current member
  std::int64_t size_ = 0;
};

struct TarMember {
  std::string name;
  std::int64_t size = 0;
};

class TarReader {
 public:
  TarReader(int fd, std::string where) : fd_(fd), where_(std::move(where)) {}

  // The next member, after the last one was read completely; nothing at the end. Links, folders,
  // devices, sparse files and names with a prefix or an extended header are errors.
  base::Result<std::optional<TarMember>> next();
  // Fills the buffer as far as the member has bytes left; 0 at its end.
  base::Result<std::size_t> read(std::span<char> buffer);
  // The rest of the member, which must not be longer than `limit`.
  base::Result<std::string> read_all(std::int64_t limit);

 private:
  base::Result<void> get(std::span<char> buffer);
  [[nodiscard]] base::Error bad(std::string what) const;

  int fd_;
  std::string where_;
  std::int64_t left_ = 0;
  std::int64_t padding_ = 0;
};

}  // namespace assay::lineage
