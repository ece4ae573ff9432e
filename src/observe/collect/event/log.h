// Log: the collector's side of the event log (wire/log_header.h). It makes the file, promises space
// to the writers, appends what the collector itself saw, and tells a Sink every record in order.
// After a crash the same class reads what was left behind.
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
class Window {
 public:
  Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { clear(); }

  // Where the byte at `offset` of the file is in memory, or nullptr if it cannot be mapped.
  std::byte* at(int fd, int protection, std::uint64_t offset);
  void clear();

 private:
  std::byte* data_ = nullptr;
  std::uint64_t begin_ = 0;
};

// The words of a program, NUL between them, without what must not reach the disk.
using KeepWords = std::function<std::string(std::string_view words)>;

class Log {
 public:
  // A new log. Fails if there is one, or if the disk has no room even for its first page. If that
  // is all it has, what the collector sees is kept in memory, and shims use the gate.
  static base::Result<Log> create(const std::filesystem::path& path);
  // The log of a collector that is gone, for finish() alone.
  static base::Result<Log> open(const std::filesystem::path& path);

  Log(Log&& other) noexcept;
  Log& operator=(Log&&) = delete;
  ~Log();

  // What the collector saw itself; told by the next drain(), in its turn. When the disk is full it
  // is kept in memory, which only a crash can lose.
  void append(const Event& event);
  // Applied to the words of every program that is appended from now on; empty: they stay as they
  // are.
  void keep_words(KeepWords keep) { keep_words_ = std::move(keep); }
  // Tells everything that is committed up to the first record still being written, and keeps space
  // ahead of the writers. Returns how many events were told.
  std::size_t drain(Sink& sink);
  // The same when nobody writes any more: records left half-written by killed processes are stepped
  // over and counted.
  std::size_t finish(Sink& sink);

  [[nodiscard]] wire::LogHeader& header() { return *header_; }
  [[nodiscard]] std::uint64_t torn() const { return torn_; }
  // Whether the disk was ever too full for the log: then shims use the gate instead.
  [[nodiscard]] bool starved() const { return starved_; }

 private:
  Log(base::UniqueFd fd, wire::LogHeader* header) : fd_(std::move(fd)), header_(header) {}
  bool allocate(std::uint64_t end);
  void keep_ahead();
  void append_kept(const Event& event);
  bool write(const Event& event);
  std::size_t tell_until_gap(Sink& sink);
  std::size_t tell_late(Sink& sink);
  std::size_t tell_overflow(Sink& sink);
  std::uint64_t next_record(std::uint64_t offset, std::uint64_t end);
  bool step_over_gap();
  wire::Record* record_at(std::uint64_t offset);
  [[nodiscard]] std::uint64_t end() const;

  base::UniqueFd fd_;
  wire::LogHeader* header_;
  Window reading_;
  Window writing_;
  std::uint64_t cursor_ = wire::kHeaderSize;
  std::chrono::steady_clock::time_point stuck_since_{};
  bool stuck_ = false;
  // Records that were stepped over while their writer may still have been alive.
  std::vector<std::uint64_t> late_;
  // Serialised events that found no room in the file.
  std::deque<std::string> overflow_;
  KeepWords keep_words_;
  std::uint64_t torn_ = 0;
  bool starved_ = false;
};

}  // namespace assay::collect
