// StopWaiter: waits for the next stop or end of a traced thread. ptrace has no descriptor to poll,
// so this is a blocking wait that a timer interrupts. Used by trace_loop.cc.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

#include <cstdint>

namespace assay::collect {

class StopWaiter {
 public:
  StopWaiter();
  StopWaiter(const StopWaiter&) = delete;
  StopWaiter& operator=(const StopWaiter&) = delete;
  ~StopWaiter();

  struct Stop {
    pid_t thread = 0;  // 0: a tick, every 100 ms; -1: no thread is left
    int status = 0;
    struct rusage usage {};
  };
  Stop next();

 private:
  bool poll_briefly(Stop& stop);

  bool has_timer_ = false;
  timer_t timer_{};
  struct sigaction former_ {};
  bool may_poll_;
  int polls_missed_ = 0;
};

}  // namespace assay::collect
