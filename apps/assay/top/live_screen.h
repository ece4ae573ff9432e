// LiveScreen: redraws the terminal until a signal ends it, and restores the terminal then.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace assay::cli {

class LiveScreen {
 public:
  // Handles SIGINT, SIGTERM and SIGHUP as requests to end; with `draws`, uses the terminal's
  // alternate screen until it is destroyed. One instance at a time.
  explicit LiveScreen(bool draws);
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  [[nodiscard]] bool ended() const;
  // True at the deadline (monotonic); false after a signal: a request to end, or a new size.
  bool wait_until(std::int64_t deadline_ns);
  [[nodiscard]] std::size_t columns() const;
  // Lines that do not fit are left out; the last line gives their number.
  void draw(const std::string& text) const;

 private:
  void enter() const;
  void leave() const;

  bool draws_;
  sigset_t before_{};
};

}  // namespace assay::cli
