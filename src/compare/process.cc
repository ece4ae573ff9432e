#include "compare/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/clock.h"
#include "base/file.h"

namespace assay::compare {
namespace {

constexpr std::int64_t kGraceNs = 2'000'000'000;
constexpr mode_t kOutputMode = 0644;

sigset_t interrupting_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  return set;
}

base::Result<base::UniqueFd> output_file(const std::filesystem::path& path) {
  base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOutputMode));
  if (!fd.valid()) return base::fail(base::system_error(path, "cannot be written", errno));
  return fd;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Everything that posix_spawn wants to be told, and gives back.
class Spawn {
 public:
  Spawn() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    const sigset_t interrupting = interrupting_signals();
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &interrupting);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;
  ~Spawn() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  void give(int fd, int as) { ::posix_spawn_file_actions_adddup2(&actions_, fd, as); }
  // 0 or errno.
  int start(const std::string& path, char* const* arguments, char* const* environment,
            pid_t& child) {
    return ::posix_spawn(&child, path.c_str(), &actions_, &attributes_, arguments, environment);
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

double seconds_between(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / 1e9;
}

// What a process writes into a pipe, and the file that it goes to.
struct Stream {
  int pipe = -1;
  int file = -1;
  std::size_t bytes = 0;
};

// A pipe, or nothing where none is needed.
struct Pipe {
  base::UniqueFd read_end;
  base::UniqueFd write_end;
};

base::Result<Pipe> pipe_if(bool needed) {
  std::array<int, 2> ends = {-1, -1};
  if (needed && ::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return base::fail(base::system_error("pipe", "cannot be made", errno));
  }
  return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

// Waits for a process that runs, passing its output on if there are pipes.
class Watch {
 public:
  Watch(pid_t child, std::int64_t started_ns, const ProcessRequest& request,
        const Interrupts& interrupts)
      : child_(child),
        fd_(static_cast<int>(::syscall(SYS_pidfd_open, child, 0))),
        started_ns_(started_ns),
        interrupts_(interrupts) {
    if (request.timeout) {
      deadline_ns_ = started_ns + static_cast<std::int64_t>(request.timeout->count() * 1e9);
    }
  }

  // Of pipes that are -1 nothing is passed on.
  ProcessOutcome wait(Stream out, Stream err) {
    while (!ended_) {
      std::array<pollfd, 4> fds = {{{fd_.get(), POLLIN, 0},
                                    {told_ ? -1 : interrupts_.fd(), POLLIN, 0},
                                    {out.pipe, POLLIN, 0},
                                    {err.pipe, POLLIN, 0}}};
      ::poll(fds.data(), fds.size(), patience_ms());
      const std::int64_t now = base::system_clock().monotonic_ns();
      if (fds[2].revents != 0) pass_on(out, outcome_.moments, now);
      if (fds[3].revents != 0) pass_on(err, outcome_.err_moments, now);
      if (fds[0].revents != 0 || !fd_.valid()) {
        outcome_.wall_s = seconds_between(started_ns_, now);
        ended_ = true;
      } else if (fds[1].revents != 0 && !told_) {
        outcome_.interrupted = true;
        tell(now);
      } else if (deadline_ns_ && now >= *deadline_ns_) {
        if (!told_) outcome_.timed_out = true;
        tell(now);
      }
    }
    reap();
    // What it wrote last may still be in the pipe; descendants that live on may keep it open.
    const std::int64_t end = started_ns_ + static_cast<std::int64_t>(outcome_.wall_s * 1e9);
    while (readable(out.pipe)) pass_on(out, outcome_.moments, end);
    while (readable(err.pipe)) pass_on(err, outcome_.err_moments, end);
    return std::move(outcome_);
  }

 private:
  static bool readable(int pipe) {
    if (pipe < 0) return false;
    pollfd fd = {pipe, POLLIN, 0};
    return ::poll(&fd, 1, 0) == 1;
  }

  [[nodiscard]] int patience_ms() const {
    if (!deadline_ns_) return -1;
    const std::int64_t left = *deadline_ns_ - base::system_clock().monotonic_ns();
    return left <= 0 ? 0 : static_cast<int>(std::min<std::int64_t>(left / 1'000'000 + 1, 1 << 30));
  }

  // First politely, then not; the deadline becomes that of politeness.
  void tell(std::int64_t now) {
    ::kill(-child_, told_ ? SIGKILL : SIGTERM);
    told_ = true;
    deadline_ns_ = now + kGraceNs;
  }

  void pass_on(Stream& stream, std::vector<OutputMoment>& moments, std::int64_t now) const {
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(stream.pipe, buffer.data(), buffer.size());
    if (got <= 0) {
      if (got == 0 || errno != EINTR) stream.pipe = -1;
      return;
    }
    stream.bytes += static_cast<std::size_t>(got);
    moments.push_back({stream.bytes, seconds_between(started_ns_, now)});
    base::write_all(stream.file, {buffer.data(), static_cast<std::size_t>(got)});
  }

  void reap() {
    rusage usage{};
    while (::wait4(child_, &outcome_.wait_status, 0, &usage) < 0 && errno == EINTR) {
    }
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    outcome_.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    if (outcome_.interrupted || outcome_.timed_out) ::kill(-child_, SIGKILL);
  }

  pid_t child_;
  base::UniqueFd fd_;
  std::int64_t started_ns_;
  const Interrupts& interrupts_;
  std::optional<std::int64_t> deadline_ns_;
  bool told_ = false;
  bool ended_ = false;
  ProcessOutcome outcome_;
};

}  // namespace

base::Result<Interrupts> Interrupts::watch() {
  const sigset_t signals = interrupting_signals();
  base::UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return base::fail(base::system_error("signals", "cannot be watched", errno));
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return Interrupts(std::move(fd));
}

Interrupts::~Interrupts() {
  if (!fd_.valid()) return;
  // What came was heard: it must not end the process afterwards.
  hear();
  const sigset_t signals = interrupting_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

bool Interrupts::happened() const {
  pollfd fd = {fd_.get(), POLLIN, 0};
  return heard_ || ::poll(&fd, 1, 0) == 1;
}

void Interrupts::hear() {
  heard_ = happened();
  signalfd_siginfo heard;
  while (::read(fd_.get(), &heard, sizeof heard) == sizeof heard) {
  }
}

std::string ProcessOutcome::how() const {
  if (timed_out) return "ran into the timeout";
  if (interrupted) return "was interrupted";
  if (WIFSIGNALED(wait_status))
    return fmt::format("was killed by signal {}", WTERMSIG(wait_status));
  return fmt::format("exited with {}", WEXITSTATUS(wait_status));
}

base::Result<ProcessOutcome> run_process(const ProcessRequest& request,
                                         const Interrupts& interrupts) {
  ASSAY_TRY(const base::UniqueFd out, output_file(request.out));
  ASSAY_TRY(const base::UniqueFd err, output_file(request.err));
  ASSAY_TRY(Pipe out_pipe, pipe_if(request.time_output));
  ASSAY_TRY(Pipe err_pipe, pipe_if(request.time_output));
  Spawn spawn;
  spawn.give(request.time_output ? out_pipe.write_end.get() : out.get(), STDOUT_FILENO);
  spawn.give(request.time_output ? err_pipe.write_end.get() : err.get(), STDERR_FILENO);
  const std::vector<char*> arguments = pointers(request.words);
  const std::vector<char*> environment = pointers(request.environment);
  const std::string path = program_path(request.words.front());
  if (path.empty()) {
    return base::fail(base::unfit_error(request.words.front(), "is no program that can be run"));
  }
  pid_t child = -1;
  const std::int64_t started = base::system_clock().monotonic_ns();
  const int error = spawn.start(path, arguments.data(), environment.data(), child);
  if (error != 0) return base::fail(base::system_error(path, "cannot be started", error));
  out_pipe.write_end.reset();
  err_pipe.write_end.reset();
  return Watch(child, started, request, interrupts)
      .wait({out_pipe.read_end.get(), out.get()}, {err_pipe.read_end.get(), err.get()});
}

}  // namespace assay::compare
