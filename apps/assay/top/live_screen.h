// LiveScreen: a terminal that is drawn over and over, until somebody has had enough. Whatever ends
// it, the terminal is as it was.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace assay::cli {

class LiveScreen {
 public:
  // Takes SIGINT, SIGTERM and SIGHUP as a wish to end; with `draws`, the terminal's second screen
  // as well, until it is destroyed. One at a time.
  explicit LiveScreen(bool draws);
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  [[nodiscard]] bool ended() const;
  // True when the time (monotonic) has come; false when a signal did: an end, or a new size.
  bool wait_until(std::int64_t deadline_ns);
  [[nodiscard]] std::size_t columns() const;
  // Lines that do not fit are left out, and the last line says how many.
  void draw(const std::string& text) const;
  // To be waited with by others: signals come in only while they do.
  [[nodiscard]] const sigset_t& mask() const { return before_; }

 private:
  void enter() const;
  void leave() const;

  bool draws_;
  sigset_t before_{};
};

}  // namespace assay::cli
