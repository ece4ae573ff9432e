// FileTable: the files behind the paths, identified by device and inode while they exist, with
// their state before the run changed them and the digest of that state.
#pragma once

#include <cstdint>
#include <vector>

#include "hash/digest.h"
#include "lineage/track/containers.h"
#include "lineage/track/path_table.h"
#include "observe/wire/record.h"

namespace assay::lineage {

namespace file_flag {
inline constexpr std::uint16_t kPreexisting = 1;  // existed before the run
inline constexpr std::uint16_t kWanted = 2;       // its content before the run's changes is needed
inline constexpr std::uint16_t kWritten = 4;      // opened for writing or truncated by the run
inline constexpr std::uint16_t kRacy = 8;         // so new that its times may not show a change
inline constexpr std::uint16_t kQueued = 16;      // in the hash queue
inline constexpr std::uint16_t kGivenUp = 32;     // cannot be hashed; the reason is reported
inline constexpr std::uint16_t kInherited = 64;   // standard output or error: always an output
inline constexpr std::uint16_t kInheritedEmpty = 128;  // and it was empty at the start
inline constexpr std::uint16_t kOnlyErrors = 32768;    // it was standard error and nothing else
inline constexpr std::uint16_t kUnnamed = 256;         // O_TMPFILE
inline constexpr std::uint16_t kAppeared = 512;        // appeared at a known path without an event
inline constexpr std::uint16_t kOutside = 1024;        // changed by another program; reported
inline constexpr std::uint16_t kRenamed =
    2048;  // the run changed one of its names, and thereby its ctime
inline constexpr std::uint16_t kElsewhere = 4096;  // has hard links that are not known
inline constexpr std::uint16_t kPassedOn =
    8192;  // the run could write to it only through an inherited descriptor above 2
inline constexpr std::uint16_t kEmptied = 16384;  // truncated by the run
}  // namespace file_flag

struct File {
  std::uint64_t inode = 0;  // 0: not known yet
  std::int64_t size = 0;    // this and the next two: when first seen
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  std::uint32_t digest = 0;  // 0: none
  PathId name = 0;           // one of its paths or, if it has none left, a former one
  std::uint16_t device = 0;  // index in the table of devices
  std::uint16_t flags = 0;   // file_flag
  std::uint32_t names = 0;   // number of known paths that lead to it now

  [[nodiscard]] bool has(std::uint16_t flag) const { return (flags & flag) != 0; }
  // If not, its inode may have been reused.
  [[nodiscard]] bool is_alive() const {
    return names > 0 || has(file_flag::kUnnamed | file_flag::kElsewhere);
  }
};
static_assert(sizeof(File) == 48);

class FileTable {
 public:
  FileTable() : devices_{0} {}

  FileId add(const wire::Stamp* stamp, std::uint16_t flags);
  // The latest file with this identity, alive or not; 0 if there was none.
  [[nodiscard]] FileId find(std::uint64_t device, std::uint64_t inode) const;
  [[nodiscard]] bool is(FileId id, const wire::Stamp& stamp) const;
  // Gives the file this identity.
  void identify(FileId id, const wire::Stamp& stamp);
  void set_state(FileId id, const wire::Stamp& stamp);
  [[nodiscard]] wire::Stamp stamp(FileId id) const;

  void set_digest(FileId id, const hash::Digest& digest);
  // Only where File::digest is not 0.
  [[nodiscard]] const hash::Digest& digest(FileId id) const { return digests_[files_[id].digest]; }

  File& operator[](FileId id) { return files_[id]; }
  const File& operator[](FileId id) const { return files_[id]; }
  [[nodiscard]] FileId end() const { return files_.end(); }

 private:
  std::uint16_t device_number(std::uint64_t device);

  Chunks<File> files_;
  Chunks<hash::Digest> digests_;
  std::vector<std::uint64_t> devices_;
  IdIndex index_;
};

}  // namespace assay::lineage
