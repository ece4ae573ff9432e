// Record: one thing a traced command did to a file, in the format of the event log. The log is
// memory shared by the command's processes and the collector, so a record consists of fixed-size
// fields and plain text, is written once and never moved.
//
// Used inside the target process: no allocation, no exceptions, no library calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace assay::wire {

// The operations that lineage needs, and events of processes. All collectors use these.
enum class RecordOp : std::uint8_t {
  kNone = 0,  // padding
  kRead,      // opened for reading; with flag::kWritable, also for writing. The stamp is the opened
              // file's. For opens, other is the path as given, if that goes through links and path
              // does not
  kWrite,     // opened for writing, existing content kept
  kCreate,    // a file that did not exist before was created and opened for writing
  kTruncate,  // existing content truncated (O_TRUNC, truncate)
  kDelete,    // a name removed
  kRename,    // path became other; what was at other is gone
  kLink,      // other is a second name of path (link, linkat)
  kExec,      // the process became the program at path; other holds its arguments, NUL between them
  kProcess,   // a process was seen for the first time (or forked)
  kExit,      // a process ended; value is its wait status
  kMissed,    // something could not be observed: path is its kind, other a text
  kRelink,    // the symbolic link at path is made, removed or moved: paths through it change
  kList,      // the folder at path was opened, probably to list its names;
              // flag::kRelative, flag::kPlainOpen
  kAbsent,    // path was looked for and does not exist
  kNetwork,   // path is a host name that was looked up, or an address that was connected to. With a
              // stamp: traffic of the connection `inode`, size bytes received, mtime_ns bytes sent
  kQueried,   // path was asked about and exists (stat, access, readlink); flag::kSize
};
inline constexpr RecordOp kLastOp = RecordOp::kQueried;

const char* name_of(RecordOp op);

// kMissed of a file so deep that its path is longer than PATH_MAX: it could not be found again.
inline constexpr char kLongPath[] = "long-path";
inline constexpr char kLongPathText[] = ", whose full path is longer than the kernel can tell";

// The origin of a record.
enum class Source : std::uint8_t { kShim = 1, kGate, kPtrace, kEbpf, kInherited };

namespace flag {
inline constexpr std::uint16_t kWritable = 1;   // kRead: the same open could write
inline constexpr std::uint16_t kNoStamp = 2;    // the stamp could not be taken; its fields are zero
inline constexpr std::uint16_t kExchange = 4;   // kRename: the two names swapped (RENAME_EXCHANGE)
inline constexpr std::uint16_t kUnnamed = 8;    // kCreate: O_TMPFILE, has no name until linked
inline constexpr std::uint16_t kNoStatus = 16;  // kExit: the status is unknown
inline constexpr std::uint16_t kRacy = 32;      // Source::kInherited: a change may not show
inline constexpr std::uint16_t kRelative = 64;  // kList: it was given by a relative path
inline constexpr std::uint16_t kPlainOpen = 256;  // kList: opened without O_DIRECTORY
inline constexpr std::uint16_t kSize = 128;       // kQueried: the answer has the size (stat)
}  // namespace flag

// Distinguishes states of a file, as far as the file system does.
struct Stamp {
  std::uint64_t device = 0;  // as stat's st_dev
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  bool operator==(const Stamp&) const = default;
};

// The word that holds a record's magic, state and length in bytes. It is
// written twice, as kReserved and as kCommitted, so that a writer killed between the two leaves a
// record that can be stepped over.
enum class State : std::uint8_t { kFree = 0, kReserved = 0x52, kCommitted = 0x43 };

constexpr std::uint64_t kRecordMagic = 0xA55A'1E00'0000'0000;

constexpr std::uint64_t record_word(State state, std::uint32_t length) {
  return kRecordMagic | (std::uint64_t{static_cast<std::uint8_t>(state)} << 32U) | length;
}

struct Record {
  std::atomic<std::uint64_t> word{0};  // see record_word
  RecordOp op = RecordOp::kNone;
  Source source = Source::kShim;
  std::uint16_t flags = 0;
  std::uint16_t path_length = 0;   // of the text: path first,
  std::uint16_t other_length = 0;  // then other; neither is terminated
  std::int32_t thread = 0;
  std::int32_t process = 0;  // thread group
  std::int32_t parent = 0;   // 0: unknown
  std::int32_t value = 0;    // kExit: the wait status; Source::kInherited: the descriptor
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC
  Stamp stamp;
  // path and other follow

  [[nodiscard]] char* text() { return reinterpret_cast<char*>(this + 1); }
  [[nodiscard]] const char* text() const { return reinterpret_cast<const char*>(this + 1); }
};
static_assert(sizeof(Record) == 80);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Records start at multiples of this, so that a reader that meets a damaged record can find the
// next one.
inline constexpr std::size_t kRecordAlignment = 64;

constexpr std::size_t record_size(std::size_t text_length) {
  return (sizeof(Record) + text_length + kRecordAlignment - 1) & ~(kRecordAlignment - 1);
}

}  // namespace assay::wire
