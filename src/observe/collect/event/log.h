// EventLog: the collector's side of the event log (wire/log_header.h). It creates the file,
// allocates space for the writers, appends the collector's own events, and delivers every record to
// an EventSink in order. After a crash the same class reads what was left.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "observe/collect/event/event.h"
#include "observe/wire/log_header.h"

namespace assay::collect {

// One mapped piece of the log.
class LogWindow {
 public:
  LogWindow() = default;
  LogWindow(const LogWindow&) = delete;
  LogWindow& operator=(const LogWindow&) = delete;
  ~LogWindow() { clear(); }

  // Where the byte at `offset` of the file is in memory, or nullptr if it cannot be mapped.
  std::byte* at(int fd, int protection, std::uint64_t offset);
  void clear();

 private:
  std::byte* data_ = nullptr;
  std::uint64_t begin_ = 0;
};

// Returns NUL-separated program arguments without secrets, which must not reach the disk.
using RedactArguments = std::function<std::string(std::string_view arguments)>;

class EventLog {
 public:
  // A new log. Fails if it exists, or if the disk has no room for its first page. If there is room
  // for no more than that, the collector's events stay in memory and shims use the gate.
  static base::Result<EventLog> create(const std::filesystem::path& path);
  // The log of a collector that was killed; only finish() may be called.
  static base::Result<EventLog> open(const std::filesystem::path& path);

  EventLog(EventLog&& other) noexcept;
  EventLog& operator=(EventLog&&) = delete;
  ~EventLog();

  // Adds an event of the collector's own; drain() delivers it in its turn. When the disk is full it
  // stays in memory and would be lost in a crash.
  void append(const Event& event);
  // Applied to the arguments of every exec event that is appended from now on.
  void redact_with(RedactArguments keep) { redact_ = std::move(keep); }
  // Delivers all committed records up to the first one still being written, and allocates space
  // ahead of the writers. Returns the number of events.
  std::size_t drain(EventSink& sink);
  // The same after the last writer has ended: records left unfinished by killed processes are
  // skipped and counted.
  std::size_t finish(EventSink& sink);

  [[nodiscard]] wire::LogHeader& header() { return *header_; }
  [[nodiscard]] std::uint64_t torn() const { return torn_; }

 private:
  EventLog(base::UniqueFd fd, wire::LogHeader* header) : fd_(std::move(fd)), header_(header) {}
  bool allocate(std::uint64_t end);
  void allocate_ahead();
  void append_redacted(const Event& event);
  bool write(const Event& event);
  std::size_t deliver_until_gap(EventSink& sink);
  std::size_t deliver_late(EventSink& sink);
  std::size_t deliver_overflow(EventSink& sink);
  std::uint64_t next_record(std::uint64_t offset, std::uint64_t end);
  bool skip_gap();
  wire::Record* record_at(std::uint64_t offset);
  [[nodiscard]] std::uint64_t end() const;

  base::UniqueFd fd_;
  wire::LogHeader* header_;
  LogWindow reading_;
  LogWindow writing_;
  std::uint64_t cursor_ = wire::kHeaderSize;
  std::chrono::steady_clock::time_point stuck_since_{};
  bool stuck_ = false;
  // Records that were skipped while their writer may still have been running.
  std::vector<std::uint64_t> late_;
  // Serialised events that did not fit into the file.
  std::deque<std::string> overflow_;
  RedactArguments redact_;
  std::uint64_t torn_ = 0;
};

}  // namespace assay::collect
