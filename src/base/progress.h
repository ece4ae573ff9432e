// Progress: one line on standard error that shows how far a long task is and when it will end.
//
//   Progress progress({.label = "hashing", .total = size, .unit = ProgressUnit::kBytes});
//   …  progress.advance(n);
//
// - Silent if standard error is not a terminal, if quiet, and for tasks that end at once.
// - Drawn at most ten times a second, never wider than the terminal, removed at the end.
// - advance() may be called from several threads; it costs an atomic add and a clock reading.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/progress_line.h"

namespace assay::base {

// Where the line is drawn. Called by one thread at a time.
class ProgressTerminal {
 public:
  virtual ~ProgressTerminal() = default;
  // Called once, at the start.
  [[nodiscard]] virtual bool is_terminal() const = 0;
  // Called for every drawing, because windows are resized.
  [[nodiscard]] virtual std::size_t columns() const = 0;
  virtual void write(std::string_view text) = 0;
};

ProgressTerminal& stderr_terminal();

struct ProgressOptions {
  std::string label;
  std::optional<std::int64_t> total;  // leave out when unknown
  ProgressUnit unit = ProgressUnit::kItems;
  bool quiet = false;
  // Both must outlive the Progress.
  ProgressTerminal* terminal = &stderr_terminal();
  const Clock* clock = &system_clock();
};

class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::int64_t amount = 1) {
    done_.fetch_add(amount, std::memory_order_relaxed);
    if (shown_) draw_if_due();
  }
  [[nodiscard]] std::int64_t done() const { return done_.load(std::memory_order_relaxed); }

  // Removes the line and prints `summary`, if given, in its place. Later calls of this or advance()
  // draw nothing.
  void finish(std::string_view summary = {});

 private:
  void draw_if_due();
  void draw(std::int64_t now_ns);

  const ProgressOptions options_;
  const bool shown_;
  std::atomic<std::int64_t> done_ = 0;
  std::atomic<std::int64_t> next_draw_ns_ = 0;

  std::mutex mutex_;  // guards what follows, and the terminal
  std::int64_t start_ns_ = 0;
  std::int64_t sampled_ns_ = 0;
  std::int64_t sampled_done_ = 0;
  SmoothedRate rate_;
  bool drawn_ = false;
  bool finished_ = false;
};

}  // namespace assay::base
