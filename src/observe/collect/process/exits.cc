#include "observe/collect/process/exits.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "observe/collect/event/event.h"
#include "observe/collect/process/launch.h"

namespace assay::collect {
namespace {

// linux/pidfd.h of Linux 6.15, which is newer than Debian 12's.
struct PidfdInfo {
  std::uint64_t mask = 0;
  std::uint64_t cgroup = 0;
  std::array<std::uint32_t, 11> ids{};
  std::int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr std::uint64_t kInfoExit = 1 << 3;

// Leaves descriptors for the tracker's open files.
constexpr std::size_t kMost = 2000;

constexpr int kLastMoment_ms = 100;

// Orphans are the collector's children, and nothing else waits for them.
std::optional<int> status_of_orphan(pid_t process) {
  int status = 0;
  if (::waitpid(process, &status, WNOHANG) == process) return status;
  return std::nullopt;
}

}  // namespace

ExitWatcher::ExitWatcher(pid_t command, EventSink& sink)
    : command_(command),
      us_(::getpid()),
      keeper_(::getppid()),
      sink_(sink),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void ExitWatcher::on_event(const Event& event) {
  // Each process occurs at least once with its parent.
  if (event.op == wire::RecordOp::kExit) {
    watched_.erase(event.process);
    fresh_.erase(event.process);
  } else if (event.parent != 0 && event.process != command_ && !watched_.contains(event.process)) {
    fresh_.insert(event.process);
  }
  // Orphans are the collector's or keeper's children; their former parent is unknown.
  const bool adopted = event.parent == us_ || event.parent == keeper_;
  if (!adopted || event.process == command_) return sink_.on_event(event);
  Event orphan = event;
  orphan.parent = 0;
  sink_.on_event(orphan);
}

void ExitWatcher::watch(pid_t process) {
  if (watched_.size() >= kMost) return;
  base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!pidfd.valid()) return;  // gone already, or a kernel before 5.3
  epoll_event event{};
  event.events = EPOLLIN | EPOLLHUP | EPOLLET;  // at its exit, and when it was waited for
  event.data.fd = process;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) != 0) return;
  watched_.emplace(process, Watched{std::move(pidfd)});
}

void ExitWatcher::append(pid_t process, std::optional<int> status, std::int64_t time_ns,
                         EventLog& log) {
  log.append({.op = wire::RecordOp::kExit,
              .source = wire::Source::kGate,
              .flags = static_cast<std::uint16_t>(wire::flag::kNoStamp |
                                                  (status ? 0 : wire::flag::kNoStatus)),
              .thread = process,
              .process = process,
              .value = status.value_or(0),
              .time_ns = time_ns});
}

// False if more will be known later.
bool ExitWatcher::report(pid_t process, Watched& watched, bool last, EventLog& log) {
  if (watched.ended_ns == 0) watched.ended_ns = monotonic_ns();
  PidfdInfo info;
  info.mask = kInfoExit;
  std::optional<int> status = status_of_orphan(process);
  if (!status && ::ioctl(watched.pidfd.get(), kGetInfo, &info) == 0 &&
      (info.mask & kInfoExit) != 0) {
    status = info.exit_code;
  }
  if (!status && !last) return false;
  append(process, status, watched.ended_ns, log);
  return true;
}

void ExitWatcher::idle(EventLog& log) {
  take(log);
  for (const pid_t process : std::exchange(fresh_, {})) {
    if (const auto status = status_of_orphan(process)) {
      append(process, status, monotonic_ns(), log);
    } else {
      watch(process);
    }
  }
}

void ExitWatcher::take(EventLog& log, int wait_ms) {
  std::array<epoll_event, 64> events;
  int count = 0;
  while ((count = ::epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms)) > 0) {
    for (int i = 0; i < count; ++i) {
      const auto found = watched_.find(events[static_cast<std::size_t>(i)].data.fd);
      if (found == watched_.end()) continue;
      const bool waited_for = (events[static_cast<std::size_t>(i)].events & EPOLLHUP) != 0;
      if (report(found->first, found->second, waited_for, log)) watched_.erase(found);
    }
    if (watched_.empty()) return;
  }
}

void ExitWatcher::finish(EventLog& log) {
  idle(log);
  // The gate's listener closes when the last process begins to exit, shortly before it has exited.
  if (!watched_.empty()) take(log, kLastMoment_ms);
  for (auto& [process, watched] : watched_) {
    if (watched.ended_ns != 0) report(process, watched, true, log);
  }
  watched_.clear();
}

Reaper::Reaper() {
  save_signals();
  sigset_t child{};
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  signals_.reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool Reaper::reap(pid_t command, EventLog& log) {
  signalfd_siginfo ignored{};
  while (::read(signals_.get(), &ignored, sizeof ignored) > 0) {
  }
  if (ended_ || ::wait4(command, &status_, WNOHANG, &usage_) != command) return false;
  ended_ = true;
  log.append({.op = wire::RecordOp::kExit,
              .source = wire::Source::kGate,
              .thread = command,
              .process = command,
              .value = status_,
              .time_ns = monotonic_ns()});
  return true;
}

CollectorResult Reaper::outcome() const {
  CollectorResult out;
  out.wait_status = status_;
  out.usage = usage_;
  return out;
}

}  // namespace assay::collect
