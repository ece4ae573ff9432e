// Interrupts: Ctrl-C, SIGTERM and SIGHUP as a file descriptor, for programs that wait for others.
#pragma once

#include <signal.h>

#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::base {

// Those three.
sigset_t interrupting_signals();

struct Interrupt {
  int number = 0;  // SIGINT, SIGTERM or SIGHUP
  // Sent by the kernel, for a terminal, to every process of the foreground group; else by kill(2).
  bool from_terminal = false;
};

// While this exists, these signals do not end this process. One at a time.
class Interrupts {
 public:
  static Result<Interrupts> watch();
  Interrupts(Interrupts&&) = default;
  Interrupts& operator=(Interrupts&&) = delete;
  ~Interrupts();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool happened() const;  // stays true
  // Consumes pending signals, and says which came last: only a further one interrupts processes
  // that start after this.
  std::optional<Interrupt> consume();

 private:
  explicit Interrupts(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  bool happened_ = false;
};

}  // namespace assay::base
