#include "observe/collect/keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/process/exit_status.h"
#include "base/terminal.h"
#include "observe/collect/gate/gate.h"
#include "observe/collect/process/inherited.h"
#include "observe/collect/process/launch.h"
#include "observe/wire/pass_descriptor.h"

namespace assay::collect {
namespace {

enum class Kind : int { kStarted, kEnded, kPrint, kDetach };
struct Message {
  Kind kind = Kind::kPrint;
  int value = 0;
  std::array<char, 1000> text{};
};

// Signals to `assay run` that are meant for the command.
constexpr std::array kForwarded = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
                                   SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};
// Signals that would end or stop the collector while the command needs it.
constexpr std::array kIgnored = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP,  SIGUSR1, SIGUSR2,
                                 SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};

constexpr int kNoticeAfter_ms = 3000;

void send(int socket, const Message& message, int descriptor) {
  wire::send_message(socket, &message, sizeof message, descriptor);
}

// False when the collector has ended.
bool receive(int socket, Message& message, base::UniqueFd& descriptor) {
  int received = -1;
  const bool whole = wire::receive_message(socket, &message, sizeof message, received);
  if (received >= 0) descriptor.reset(received);
  return whole;
}

void point_at_null(std::initializer_list<int> descriptors) {
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return;
  for (const int descriptor : descriptors) ::dup2(null.get(), descriptor);
}

// If a standard stream is closed, the next file to be opened would get its number and be written to
// as if it were that stream. Close-on-exec, because the command must still find it closed.
void occupy_closed_streams() {
  int descriptor = 0;
  do {
    descriptor = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

// The guard holds the gate in case keeper and collector are both killed: without it every stopped
// call of the command would fail. `alive` reaches its end when both are gone.
pid_t start_guard(int listener, int alive) {
  const pid_t guard = ::fork();
  if (guard != 0) return guard;
  ::prctl(PR_SET_NAME, "assay-guard");
  ::setsid();
  point_at_null({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  constexpr int kListener = 3;
  constexpr int kAlive = 4;
  const int high = ::fcntl(alive, F_DUPFD, kAlive + 1);
  ::dup2(listener, kListener);
  ::dup2(high, kAlive);
  ::close_range(kAlive + 1, ~0U, 0);
  std::array<pollfd, 2> waiting{{{kListener, 0, 0}, {kAlive, POLLIN, 0}}};
  for (;;) {
    ::poll(waiting.data(), waiting.size(), -1);
    if (waiting[0].revents != 0) ::_exit(0);  // no process is left under the filter
    if (waiting[1].revents == 0) continue;
    take_over_gate(kListener);
    ::_exit(0);
  }
}

[[noreturn]] void run_collector(base::UniqueFd socket,
                                const std::function<int(KeeperChannel&)>& collect) {
  // Not the keeper's name: killing `assay` by name must not hit the process that the command
  // depends on.
  ::prctl(PR_SET_NAME, "lineage-collect");
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (const int number : kIgnored) ::sigaction(number, &ignore, nullptr);
  KeeperChannel channel(std::move(socket));
  ::_exit(collect(channel));
}

class Keeper {
 public:
  Keeper(pid_t collector, bool wait, base::UniqueFd socket, base::UniqueFd alive,
         base::UniqueFd watched)
      : collector_(collector),
        wait_(wait),
        socket_(std::move(socket)),
        alive_(std::move(alive)),
        watched_(std::move(watched)) {
    sigset_t set{};
    ::sigemptyset(&set);
    for (const int number : kForwarded) ::sigaddset(&set, number);
    signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  KeeperResult keep() {
    while (listen()) {
    }
    if (result_.detached) return result_;
    int status = 0;
    ::waitpid(collector_, &status, 0);
    if (!base::signal_of(status)) {
      result_.collector_status = base::shell_exit_code(status);
    } else {
      result_.collector_lost = true;
      result_.collector = collector_;
      if (command_ > 0 && !result_.wait_status) wait_without_collector();
      alive_.reset();
      keep_guard();  // for what the command left running
    }
    return result_;
  }

 private:
  bool listen() {
    std::array<pollfd, 2> waiting{{{socket_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
    const bool lingering = result_.wait_status && !noticed_;
    const int ready = ::poll(waiting.data(), waiting.size(), lingering ? kNoticeAfter_ms : -1);
    if (ready == 0) print_notice();
    if (waiting[1].revents != 0 && !forward_signals()) return false;
    if (waiting[0].revents == 0) return true;
    Message message;
    if (!receive(socket_.get(), message, listener_)) return false;
    handle(message);
    return !result_.detached;
  }

  void handle(const Message& message) {
    switch (message.kind) {
      case Kind::kStarted:
        command_ = message.value;
        for (const int number : std::exchange(early_, {})) ::kill(command_, number);
        if (listener_.valid()) guard_ = start_guard(listener_.get(), watched_.get());
        break;
      case Kind::kEnded:
        result_.wait_status = message.value;
        if (!wait_) detach();
        break;
      case Kind::kDetach:
        break;
      case Kind::kPrint:
        base::write_stderr(std::string(message.text.data()) + "\n");
        break;
    }
  }

  // The collector continues without the keeper.
  void detach() {
    result_.detached = true;
    send(socket_.get(), {.kind = Kind::kDetach}, -1);
  }

  void print_notice() {
    noticed_ = true;
    if (::isatty(STDERR_FILENO) == 0) return;
    base::write_stderr(
        "assay: the command has ended; still recording its remaining processes, or hashing. Ctrl-C "
        "continues that in the background.\n");
  }

  // False when the user has stopped waiting.
  bool forward_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      if (result_.wait_status) {
        if (number == SIGCONT) continue;
        detach();
        return false;
      }
      // The terminal sends its signals to the whole process group, including the command; only
      // SIGHUP, when it is closed, goes to the session leader alone.
      const bool leader_alone = number == SIGHUP && ::getsid(0) == ::getpid();
      if (info.ssi_code == SI_KERNEL && !leader_alone) continue;
      if (command_ > 0) {
        ::kill(command_, number);
      } else {
        early_.push_back(number);
      }
    }
    return true;
  }

  // The guard may have been killed with the collector: while the keeper holds the gate's descriptor
  // the kernel keeps stopped calls waiting, and a new guard can handle them.
  void keep_guard() {
    if (!listener_.valid()) return;
    if (guard_ > 0 && ::waitpid(guard_, nullptr, WNOHANG) == 0) return;
    pollfd gate{listener_.get(), 0, 0};
    if (::poll(&gate, 1, 0) > 0) {  // no process is left under the filter
      listener_.reset();
      return;
    }
    guard_ = start_guard(listener_.get(), watched_.get());
  }

  // The collector was killed. The command is the keeper's child now, which is its subreaper, and
  // the guard handles its stopped calls as soon as the keeper has closed `alive_`.
  void wait_without_collector() {
    alive_.reset();
    int status = 0;
    for (;;) {
      keep_guard();
      std::array<pollfd, 1> waiting{{{signals_.get(), POLLIN, 0}}};
      ::poll(waiting.data(), waiting.size(), 20);
      forward_signals();
      const pid_t got = ::waitpid(command_, &status, WNOHANG);
      if (got == command_) result_.wait_status = status;
      if (got != 0) return;  // ended, or never became a child of the keeper
    }
  }

  pid_t collector_;
  bool wait_;
  pid_t command_ = 0;
  base::UniqueFd socket_;
  base::UniqueFd signals_;
  pid_t guard_ = 0;
  base::UniqueFd listener_;  // the gate's, for the guard and its successors
  base::UniqueFd alive_;
  base::UniqueFd watched_;
  std::vector<int> early_;
  bool noticed_ = false;
  KeeperResult result_;
};

}  // namespace

void KeeperChannel::started(pid_t command, int listener) {
  send(socket_.get(), {.kind = Kind::kStarted, .value = command}, listener);
}

void KeeperChannel::ended(int wait_status) {
  send(socket_.get(), {.kind = Kind::kEnded, .value = wait_status}, -1);
}

bool KeeperChannel::detached() {
  Message message;
  base::UniqueFd none;
  return receive(socket_.get(), message, none) && message.kind == Kind::kDetach;
}

void KeeperChannel::print(const std::string& line) {
  Message message;
  line.copy(message.text.data(), message.text.size() - 1);
  send(socket_.get(), message, -1);
}

base::Result<KeeperResult> run_under_keeper(bool wait,
                                            const std::function<int(KeeperChannel&)>& collect) {
  save_signals();
  raise_limits();
  occupy_closed_streams();
  shared_request();  // before the fork
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return base::fail(base::system_error("socketpair", "cannot start the collector", errno));
  }
  base::UniqueFd mine(ends[0]);
  base::UniqueFd theirs(ends[1]);
  // Open for writing in keeper and collector only: end of file means that both are gone.
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return base::fail(base::system_error("pipe", "cannot start the collector", errno));
  }
  base::UniqueFd watched(ends[0]);
  base::UniqueFd alive(ends[1]);
  // Blocked before the fork, so that none is lost and no later thread receives them.
  sigset_t set{};
  ::sigemptyset(&set);
  for (const int number : kForwarded) ::sigaddset(&set, number);
  ::sigaddset(&set, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);

  const pid_t collector = ::fork();
  if (collector < 0) {
    return base::fail(base::system_error("fork", "cannot start the collector", errno));
  }
  if (collector == 0) {
    mine.reset();
    watched.reset();
    run_collector(std::move(theirs), collect);
  }
  theirs.reset();
  // Pipes must end when the command closes them, not when the keeper exits.
  point_at_null({STDIN_FILENO, STDOUT_FILENO});
  for (const int descriptor : inherited_descriptors()) ::close(descriptor);
  return Keeper(collector, wait, std::move(mine), std::move(alive), std::move(watched)).keep();
}

void exit_with_status(const KeeperResult& result) {
  if (result.wait_status) base::exit_with_status(*result.wait_status);
  ::_exit(result.collector_lost ? static_cast<int>(base::ExitCode::kUnfit)
                                : result.collector_status);
}

}  // namespace assay::collect
