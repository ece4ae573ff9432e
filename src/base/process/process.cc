// See process.h. posix_spawn, because the caller may have threads and a large memory.
#include "base/process/process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "base/process/program.h"

namespace assay::base {
namespace {

void add(posix_spawn_file_actions_t& actions, const Redirection& one) {
  if (one.from >= 0) {
    ::posix_spawn_file_actions_adddup2(&actions, one.from, one.descriptor);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, one.descriptor, one.path.c_str(), one.flags,
                                       one.mode);
  }
}

}  // namespace

int poll_timeout_ms(std::chrono::steady_clock::time_point deadline) {
  using std::chrono::milliseconds;
  const auto left =
      std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<milliseconds::rep>(left, 0, 1 << 30));
}

Redirection from_null(int descriptor) {
  return {.descriptor = descriptor, .path = "/dev/null", .flags = O_RDWR};
}

sigset_t all_signals() {
  sigset_t set;
  ::sigfillset(&set);
  return set;
}

PreparedProcess::PreparedProcess(ProcessOptions options) : options_(std::move(options)) {
  if (options_.program.empty()) {
    const std::string_view path = options_.environment.get("PATH").value_or(kDefaultSearchPath);
    const std::string& name = options_.arguments.front();
    const bool is_path = name.find('/') != std::string::npos;  // the kernel checks it
    options_.program =
        is_path ? name : find_program(name, path, options_.directory).value_or(std::string());
  }
  arguments_ = null_terminated(options_.arguments);
  environment_ = options_.environment.pointers();
  ::posix_spawn_file_actions_init(&actions_);
  ::posix_spawnattr_init(&attributes_);
  for (const Redirection& one : options_.redirections) add(actions_, one);
  if (!options_.directory.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&actions_, options_.directory.c_str());
  }
  int flags = 0;
  if (options_.default_signals) {
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &*options_.default_signals);
    flags |= POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  }
  if (options_.own_group) {
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    flags |= POSIX_SPAWN_SETPGROUP;
  }
  ::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
}

PreparedProcess::~PreparedProcess() {
  ::posix_spawn_file_actions_destroy(&actions_);
  ::posix_spawnattr_destroy(&attributes_);
}

tl::expected<Process, int> PreparedProcess::start() {
  if (options_.program.empty()) return tl::unexpected(ENOENT);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, options_.program.c_str(), &actions_, &attributes_,
                                  arguments_.data(), environment_.data());
  if (error != 0) return tl::unexpected(error);
  return Process(pid, options_.own_group);
}

Result<Process> Process::start(ProcessOptions options) {
  std::string name = options.arguments.front();
  auto started = PreparedProcess(std::move(options)).start();
  if (!started) return fail(system_error(std::move(name), "cannot start", started.error()));
  return *std::move(started);
}

Process::Process(pid_t pid, bool own_group)
    : pid_(pid),
      own_group_(own_group),
      descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      own_group_(other.own_group_),
      waited_(other.waited_),
      descriptor_(std::move(other.descriptor_)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  end();
  pid_ = std::exchange(other.pid_, -1);
  own_group_ = other.own_group_;
  waited_ = other.waited_;
  descriptor_ = std::move(other.descriptor_);
  return *this;
}

Process::~Process() {
  end();
}

void Process::end() {
  if (pid_ <= 0 || waited_) return;
  signal(SIGKILL);
  wait();
}

Exit Process::wait() {
  Exit exit;
  while (::wait4(pid_, &exit.wait_status, 0, &exit.usage) < 0 && errno == EINTR) {
  }
  waited_ = true;
  return exit;
}

std::optional<Exit> Process::wait_until(std::chrono::steady_clock::time_point deadline) {
  if (!descriptor_.valid()) return poll_until(deadline);
  while (true) {
    const int left = poll_timeout_ms(deadline);
    pollfd exited{.fd = descriptor_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&exited, 1, left);
    if (ready > 0) return wait();
    if (ready == 0 && left == 0) return std::nullopt;
  }
}

std::optional<Exit> Process::poll_until(std::chrono::steady_clock::time_point deadline) {
  constexpr std::chrono::milliseconds kPause(5);
  while (true) {
    const bool last = std::chrono::steady_clock::now() >= deadline;
    Exit exit;
    const pid_t ended = ::wait4(pid_, &exit.wait_status, WNOHANG, &exit.usage);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) {
      waited_ = true;
      return exit;
    }
    if (last) return std::nullopt;
    std::this_thread::sleep_for(kPause);
  }
}

void Process::signal(int number) const {
  if (own_group_) {
    ::kill(-pid_, number);
  } else if (!waited_) {
    ::kill(pid_, number);
  }
}

}  // namespace assay::base
