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
#include "base/units.h"

namespace assay::base {

enum class ProgressUnit { kItems, kBytes };

struct ProgressFacts {
  std::string_view label;
  std::int64_t done = 0;
  std::optional<std::int64_t> total;  // nothing when unknown
  ProgressUnit unit = ProgressUnit::kItems;
  double per_second = 0;  // 0 when not known yet
  Seconds elapsed;
};

// "hashing  1.20 GiB / 4.00 GiB   30%  512 MB/s  ETA 0:05", or as much of it as fits into
// `columns`.
std::string progress_line(const ProgressFacts& facts, std::size_t columns);

// The rate over the last few seconds. Samples are weighted by the time they cover, so that a single
// slow or fast moment does not disturb the ETA, but a lasting change shows within seconds.
class SmoothedRate {
 public:
  // `amount` was done in the `seconds` since the previous sample.
  void sample(double amount, double seconds);
  [[nodiscard]] double per_second() const;

 private:
  double weighted_ = 0;  // decayed amount per second
  double weight_ = 0;    // decayed time; dividing by it removes the start-up bias
};

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
