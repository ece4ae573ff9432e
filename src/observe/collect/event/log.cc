#include "observe/collect/event/log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "observe/collect/event/project_folder.h"

namespace assay::collect {
namespace {

// Enough for what writers record between two drains; beyond it they go through the gate, which
// allocates more at once.
constexpr std::uint64_t kAhead = std::uint64_t{16} << 20U;
// Long enough for a writer that was descheduled in the middle of a record.
constexpr std::chrono::milliseconds kTimeout{500};

constexpr unsigned kMountId = 0x1000;  // STATX_MNT_ID, Linux 5.8

bool is_record(std::uint64_t word) {
  return (word & 0xFFFF'FF00'0000'0000U) == wire::kRecordMagic;
}
wire::State state_of(std::uint64_t word) {
  return static_cast<wire::State>((word >> 32U) & 0xFFU);
}
std::uint32_t length_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}

// The command can write to the log, so its content is validated.
bool is_sound(std::uint64_t word, std::uint64_t offset, std::uint64_t end) {
  const std::uint64_t length = length_of(word);
  return is_record(word) && length >= wire::kRecordAlignment &&
         length % wire::kRecordAlignment == 0 && length <= wire::kMaxRecordSize &&
         offset + length <= std::min(end, wire::window_begin(offset) + wire::kWindowSize);
}

Event event_of(const wire::Record& record) {
  return {.op = record.op,
          .source = record.source,
          .flags = record.flags,
          .thread = record.thread,
          .process = record.process,
          .parent = record.parent,
          .value = record.value,
          .time_ns = record.time_ns,
          .stamp = record.stamp,
          .path = {record.text(), record.path_length},
          .other = {record.text() + record.path_length, record.other_length}};
}

bool deliver(const wire::Record& record, std::uint32_t length, EventSink& sink) {
  if (record.op == wire::RecordOp::kNone || record.op > wire::kLastOp) return false;
  const std::size_t text = std::size_t{record.path_length} + record.other_length;
  if (length < sizeof(wire::Record) + text) return false;
  sink.on_event(event_of(record));
  return true;
}

void fill(wire::Record& record, const Event& event, std::size_t path, std::size_t other) {
  record.op = event.op;
  record.source = event.source;
  record.flags = event.flags;
  record.path_length = static_cast<std::uint16_t>(path);
  record.other_length = static_cast<std::uint16_t>(other);
  record.thread = event.thread;
  record.process = event.process;
  record.parent = event.parent;
  record.value = event.value;
  record.time_ns = event.time_ns;
  record.stamp = event.stamp;
  event.path.copy(record.text(), path);
  event.other.copy(record.text() + path, other);
}

constexpr std::size_t kMaxText = 0xFFFF;

}  // namespace

std::byte* LogWindow::at(int fd, int protection, std::uint64_t offset) {
  const std::uint64_t begin = wire::window_begin(offset);
  if (data_ == nullptr || begin != begin_) {
    clear();
    void* mapped =
        ::mmap(nullptr, wire::kWindowSize, protection, MAP_SHARED, fd, static_cast<off_t>(begin));
    if (mapped == MAP_FAILED) return nullptr;
    data_ = static_cast<std::byte*>(mapped);
    begin_ = begin;
  }
  return data_ + (offset - begin);
}

void LogWindow::clear() {
  if (data_ != nullptr) ::munmap(data_, wire::kWindowSize);
  data_ = nullptr;
}

base::Result<EventLog> EventLog::create(const std::filesystem::path& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid())
    return base::fail(base::system_error(path, "cannot create the event log", errno));
  std::uint64_t allocated = wire::kWindowSize;
  for (int error = 0; (error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(allocated))) != 0;
       allocated /= 4) {
    if (allocated > wire::kHeaderSize) continue;
    ::unlink(path.c_str());
    return base::fail(base::system_error(path, "cannot create the event log", error));
  }
  void* mapped =
      ::mmap(nullptr, wire::kHeaderSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) {
    return base::fail(base::system_error(path, "cannot map the event log", errno));
  }
  auto* header = new (mapped) wire::LogHeader;
  header->allocated_end = allocated;
  struct statx root {};
  if (::statx(AT_FDCWD, "/", 0, STATX_INO | kMountId, &root) == 0 &&
      (root.stx_mask & kMountId) != 0) {
    header->root_mount = root.stx_mnt_id;
    header->root_inode = root.stx_ino;
  }
  if (const std::string& project = project_folder(); project.size() < sizeof header->project) {
    header->project_length = project.size();
    std::copy(project.begin(), project.end(), header->project);
  }
  return EventLog(std::move(fd), header);
}

base::Result<EventLog> EventLog::open(const std::filesystem::path& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return base::fail(base::system_error(path, "cannot open the event log", errno));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || status.st_size < off_t{wire::kHeaderSize}) {
    return base::fail(base::failed_error(path, "is not an event log"));
  }
  void* mapped =
      ::mmap(nullptr, wire::kHeaderSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) {
    return base::fail(base::system_error(path, "cannot map the event log", errno));
  }
  auto* header = static_cast<wire::LogHeader*>(mapped);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const bool ours = header->magic == wire::kLogMagic && header->version == 1;
  EventLog log(std::move(fd), header);
  if (!ours || header->allocated_end > size) {
    return base::fail(base::failed_error(path, "is not an event log, or is truncated"));
  }
  return log;
}

EventLog::EventLog(EventLog&& other) noexcept
    : fd_(std::move(other.fd_)),
      header_(std::exchange(other.header_, nullptr)),
      cursor_(other.cursor_),
      late_(std::move(other.late_)),
      overflow_(std::move(other.overflow_)),
      redact_(std::move(other.redact_)),
      torn_(other.torn_) {}

EventLog::~EventLog() {
  if (header_ != nullptr) ::munmap(header_, wire::kHeaderSize);
}

bool EventLog::allocate(std::uint64_t end) {
  const std::uint64_t begin = header_->allocated_end;
  if (end <= begin) return true;
  end = wire::window_begin(end + wire::kWindowSize - 1);
  const int error =
      ::posix_fallocate(fd_.get(), static_cast<off_t>(begin), static_cast<off_t>(end - begin));
  if (error != 0) return false;
  header_->allocated_end.store(end, std::memory_order_release);
  return true;
}

// The first window is enough for a small command; more is allocated once it is half full.
void EventLog::allocate_ahead() {
  const std::uint64_t tail = header_->tail.load(std::memory_order_relaxed);
  if (tail > wire::kWindowSize / 2 && tail + kAhead / 2 > header_->allocated_end) {
    allocate(tail + kAhead);
  }
}

void EventLog::append(const Event& event) {
  if (event.op != wire::RecordOp::kExec || !redact_) return append_redacted(event);
  const std::string arguments = redact_(event.other);
  Event kept = event;
  kept.other = arguments;
  append_redacted(kept);
}

void EventLog::append_redacted(const Event& event) {
  if (write(event)) return;
  const std::size_t path = std::min(event.path.size(), kMaxText);
  const std::size_t other = std::min(event.other.size(), kMaxText);
  std::string& bytes = overflow_.emplace_back(sizeof(wire::Record) + path + other, '\0');
  fill(*new (bytes.data()) wire::Record, event, path, other);
}

bool EventLog::write(const Event& event) {
  if (!overflow_.empty()) return false;  // keeps the order
  const std::size_t path = std::min(event.path.size(), kMaxText);
  const std::size_t other = std::min(event.other.size(), kMaxText);
  const std::size_t size = wire::record_size(path + other);
  wire::Reservation place = wire::reserve(*header_, size);
  if (place.offset == 0 && allocate(header_->tail + wire::kWindowSize)) {
    place = wire::reserve(*header_, size);
  }
  if (place.offset == 0) return false;
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  if (place.pad != 0) {
    if (auto* gap = reinterpret_cast<wire::Record*>(writing_.at(fd_.get(), kBoth, place.pad))) {
      gap->op = wire::RecordOp::kNone;
      gap->word.store(wire::record_word(wire::State::kCommitted, place.pad_size),
                      std::memory_order_release);
    }
  }
  auto* record = reinterpret_cast<wire::Record*>(writing_.at(fd_.get(), kBoth, place.offset));
  if (record == nullptr) return false;
  fill(*record, event, path, other);
  record->word.store(wire::record_word(wire::State::kCommitted, static_cast<std::uint32_t>(size)),
                     std::memory_order_release);
  return true;
}

std::uint64_t EventLog::end() const {
  return std::min(header_->tail.load(std::memory_order_acquire), header_->allocated_end.load());
}

wire::Record* EventLog::record_at(std::uint64_t offset) {
  return reinterpret_cast<wire::Record*>(reading_.at(fd_.get(), PROT_READ, offset));
}

std::size_t EventLog::deliver_until_gap(EventSink& sink) {
  std::size_t delivered = 0;
  for (const std::uint64_t stop = end(); cursor_ < stop;) {
    const wire::Record* record = record_at(cursor_);
    if (record == nullptr) break;
    const std::uint64_t word = record->word.load(std::memory_order_acquire);
    if (!is_sound(word, cursor_, stop) || state_of(word) != wire::State::kCommitted) break;
    delivered += deliver(*record, length_of(word), sink) ? 1U : 0U;
    cursor_ += length_of(word);
    stuck_ = false;
  }
  return delivered;
}

std::size_t EventLog::deliver_overflow(EventSink& sink) {
  std::size_t delivered = 0;
  for (; !overflow_.empty(); overflow_.pop_front()) {
    const auto& bytes = overflow_.front();
    const auto& record = *reinterpret_cast<const wire::Record*>(bytes.data());
    delivered += deliver(record, static_cast<std::uint32_t>(bytes.size()), sink) ? 1U : 0U;
  }
  return delivered;
}

// The next offset after `offset` at which a record seems to begin, or `end`.
std::uint64_t EventLog::next_record(std::uint64_t offset, std::uint64_t end) {
  for (offset += wire::kRecordAlignment; offset < end; offset += wire::kRecordAlignment) {
    const wire::Record* record = record_at(offset);
    if (record == nullptr) return end;
    if (is_sound(record->word.load(std::memory_order_acquire), offset, end)) return offset;
  }
  return end;
}

// Skips an unfinished record. False at the end of the log.
bool EventLog::skip_gap() {
  const std::uint64_t stop = end();
  if (cursor_ >= stop) return false;
  const wire::Record* record = record_at(cursor_);
  if (record == nullptr) return false;
  const std::uint64_t word = record->word.load(std::memory_order_acquire);
  late_.push_back(cursor_);
  const bool reserved = is_sound(word, cursor_, stop) && state_of(word) == wire::State::kReserved;
  cursor_ = reserved ? cursor_ + length_of(word) : next_record(cursor_, stop);
  stuck_ = false;
  return true;
}

std::size_t EventLog::drain(EventSink& sink) {
  allocate_ahead();
  std::size_t delivered = deliver_until_gap(sink);
  if (cursor_ < end()) {
    const auto now = std::chrono::steady_clock::now();
    if (!std::exchange(stuck_, true)) stuck_since_ = now;
    if (now - stuck_since_ > kTimeout && skip_gap()) delivered += deliver_until_gap(sink);
  }
  return delivered + deliver_overflow(sink);
}

std::size_t EventLog::deliver_late(EventSink& sink) {
  std::size_t delivered = 0;
  for (const std::uint64_t offset : std::exchange(late_, {})) {
    const wire::Record* record = record_at(offset);
    const std::uint64_t word = record == nullptr ? 0 : record->word.load();
    const bool whole = is_sound(word, offset, end()) && state_of(word) == wire::State::kCommitted;
    if (whole && deliver(*record, length_of(word), sink)) {
      ++delivered;
    } else {
      ++torn_;
    }
  }
  return delivered;
}

std::size_t EventLog::finish(EventSink& sink) {
  std::size_t delivered = deliver_until_gap(sink);
  while (skip_gap()) delivered += deliver_until_gap(sink);
  return delivered + deliver_late(sink) + deliver_overflow(sink);
}

}  // namespace assay::collect
