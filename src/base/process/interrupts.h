// Interrupts: Ctrl-C, SIGTERM and SIGHUP as a file descriptor, for programs that wait for others.
#pragma once

#include <signal.h>

#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::base {

// SIGINT, SIGTERM and SIGHUP.
sigset_t interrupting_signals();

struct Interrupt {
  int number = 0;  // SIGINT, SIGTERM or SIGHUP
  // Whether the kernel sent it to the terminal's whole foreground group; otherwise kill(2) did.
  bool from_terminal = false;
};

// While this exists, these signals do not end this process. Only one may exist at a time.
class Interrupts {
 public:
  static Result<Interrupts> watch();
  Interrupts(Interrupts&&) = default;
  Interrupts& operator=(Interrupts&&) = delete;
  ~Interrupts();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool happened() const;  // stays true
  // Consumes pending signals and returns the last one; processes started after this are interrupted
  // only by further signals.
  std::optional<Interrupt> consume();

 private:
  explicit Interrupts(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  bool happened_ = false;
};

}  // namespace assay::base
