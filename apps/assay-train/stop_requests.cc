#include "assay-train/stop_requests.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/process/process.h"
#include "base/terminal.h"

namespace assay::cli {
namespace {

std::atomic<bool> stop_requested = false;
std::atomic<int> interrupts = 0;
std::atomic<int> to_thread = -1;  // the pipe's end for writing

// Zero ends the thread.
void tell_thread(int signal) {
  const auto byte = static_cast<unsigned char>(signal);
  (void)!::write(to_thread, &byte, 1);
}

// A signal that is sent to a process group comes twice: from the sender, and passed on by the
// process that started this one. Neither is a second request.
bool is_repetition(int signal) {
  constexpr std::int64_t kSame_ns = 500'000'000;
  static std::array<std::atomic<std::int64_t>, 65> last_ns{};
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ns = base::nanoseconds(now);
  const std::int64_t before_ns = last_ns[static_cast<std::size_t>(signal)].exchange(now_ns);
  return before_ns != 0 && now_ns - before_ns < kSame_ns;
}

// A second Ctrl-C ends the process at once, after its answer; a third one even without.
void on_signal(int signal) {
  const int saved = errno;
  if (is_repetition(signal)) {
    errno = saved;
    return;
  }
  const bool again = stop_requested.exchange(true) && signal == SIGINT;
  if (again && ++interrupts > 1) ::_exit(128 + SIGINT);
  tell_thread(signal);
  errno = saved;
}

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return signal == SIGINT ? "Ctrl-C" : fmt::format("SIG{}", name == nullptr ? "?" : name);
}

// "3 of about 40 s done".
std::string progress_text(const LoopState& state) {
  if (!state.usual_s || *state.usual_s < state.since_s) {
    return fmt::format("{:.0f} s so far", state.since_s);
  }
  return fmt::format("{:.0f} of about {:.0f} s done", state.since_s, *state.usual_s);
}

}  // namespace

std::string answer_to(int signal, bool before, const LoopState& state) {
  const std::string name = signal_name(signal);
  if (signal == SIGINT && before) {
    return name + ": stopped without a checkpoint; --resume continues from the last one";
  }
  std::string what;
  switch (state.doing) {
    case train::Doing::kStart:
      what = "stopping after the first step, then a checkpoint";
      break;
    case train::Doing::kStep:
      what = fmt::format("stopping after step {} ({}), then a checkpoint", state.step,
                         progress_text(state));
      break;
    case train::Doing::kValidation:
      what = fmt::format(
          "stopping after the validation of step {} ({:.0f} s so far), then a "
          "checkpoint",
          state.step, state.since_s);
      break;
    case train::Doing::kLastCheckpoint:
      what = fmt::format("the last checkpoint, of step {}, is being written ({:.0f} s so far)",
                         state.step, state.since_s);
      break;
  }
  return fmt::format("{}: {}; {} stops at once, without one", name, what,
                     signal == SIGINT ? "Ctrl-C again" : "Ctrl-C");
}

StopRequests::StopRequests(bool answers) : answers_(answers) {
  int ends[2];
  // Without a pipe there are no answers, but a stop is still obeyed.
  if (::pipe2(ends, O_CLOEXEC) == 0) {
    read_.reset(ends[0]);
    write_.reset(ends[1]);
    ::fcntl(write_.get(), F_SETFL, O_NONBLOCK);
    to_thread = write_.get();
    thread_ = std::thread([this] { answer_signals(); });
  }
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) ::sigaction(signal, &action, nullptr);
  // SIGHUP, sent when the terminal closes; under nohup it stays ignored.
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
}

StopRequests::~StopRequests() {
  if (!thread_.joinable()) return;
  tell_thread(0);
  thread_.join();
  to_thread = -1;
}

const std::atomic<bool>& StopRequests::requested() const {
  return stop_requested;
}

void StopRequests::begins(train::Doing doing, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  if (state_.doing == train::Doing::kStep) state_.usual_s = since_.elapsed().count();
  state_.doing = doing;
  state_.step = step;
  since_.restart();
}

LoopState StopRequests::state() const {
  const std::lock_guard lock(mutex_);
  LoopState now = state_;
  now.since_s = since_.elapsed().count();
  return now;
}

void StopRequests::answer_signals() {
  bool before = false;
  for (unsigned char byte = 0; ::read(read_.get(), &byte, 1) == 1 && byte != 0; before = true) {
    if (answers_) {
      if (base::progress_on_stderr.exchange(false)) base::write_stderr(base::kClearLine);
      base::write_stderr("assay: " + answer_to(byte, before, state()) + "\n");
    }
    if (before && byte == SIGINT) ::_exit(128 + SIGINT);
  }
}

}  // namespace assay::cli
