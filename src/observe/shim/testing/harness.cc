#include "observe/shim/testing/harness.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "observe/wire/gate.h"
#include "observe/wire/pass_descriptor.h"

namespace assay::shim::testing {
namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::abort();
}

// Which calls the small gate stops, and which argument is the path, then the flags (-1: none).
struct Stopped {
  unsigned number;
  int path;
  int flags;
};
constexpr Stopped kStopped[] = {
    {SYS_open, 0, 1},    {SYS_openat, 1, 2},  {SYS_creat, 0, -1},     {SYS_chdir, 0, -1},
    {SYS_fchdir, 0, -1}, {SYS_rename, 0, -1}, {SYS_utimensat, 1, -1},
};

std::string text_at(pid_t thread, std::uint64_t address) {
  std::string text;
  char page[256];
  while (text.size() < 8192) {
    const std::size_t want = sizeof page - (address + text.size()) % sizeof page;
    const iovec mine{page, want};
    const iovec theirs{reinterpret_cast<void*>(address + text.size()), want};
    const ssize_t got = process_vm_readv(thread, &mine, 1, &theirs, 1, 0);
    if (got <= 0) break;
    const auto length = static_cast<std::size_t>(got);
    const void* end = std::memchr(page, 0, length);
    if (end != nullptr) {
      return text.append(page, static_cast<std::size_t>(static_cast<const char*>(end) - page));
    }
    text.append(page, length);
  }
  return text;
}

StoppedCall understood(const seccomp_notif& notification) {
  for (const Stopped& stopped : kStopped) {
    if (static_cast<unsigned>(notification.data.nr) != stopped.number) continue;
    StoppedCall stop{notification.data.nr, 0, {}};
    if (stopped.number != SYS_fchdir) {
      stop.path =
          text_at(static_cast<pid_t>(notification.pid), notification.data.args[stopped.path]);
    }
    if (stopped.flags >= 0) stop.flags = static_cast<int>(notification.data.args[stopped.flags]);
    return stop;
  }
  return {notification.data.nr, 0, {}};
}

}  // namespace

ShimLog::ShimLog(std::filesystem::path path, std::uint64_t space)
    : path_(std::move(path)), size_(wire::kHeaderSize + space) {
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0 || fchmod(file, 0666) != 0 ||
      fallocate(file, 0, 0, static_cast<off_t>(size_)) != 0) {
    fail("log");
  }
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) fail("mmap");
  header_ = new (memory) wire::LogHeader;
  header_->allocated_end = size_;
}

ShimLog::~ShimLog() {
  munmap(header_, size_);
}

std::vector<LoggedEvent> ShimLog::records(int* torn, Kind kind) const {
  std::vector<LoggedEvent> found;
  const char* base = reinterpret_cast<const char*>(header_);
  for (std::uint64_t at = wire::kHeaderSize; at < header_->tail;) {
    const auto& record = *reinterpret_cast<const wire::Record*>(base + at);
    const std::uint64_t word = record.word.load(std::memory_order_acquire);
    const auto length = static_cast<std::uint32_t>(word);
    if (word == wire::record_word(wire::State::kCommitted, length) && length > 0) {
      const bool of_process =
          record.op == wire::RecordOp::kProcess || record.op == wire::RecordOp::kExit;
      if (record.op != wire::RecordOp::kNone && of_process == (kind == Kind::kProcesses)) {
        found.push_back({record.op, record.thread, record.process, record.parent, record.value,
                         record.time_ns, record.stamp,
                         std::string(record.text(), record.path_length)});
      }
      at += length;
    } else {
      if (torn != nullptr) ++*torn;
      const bool reserved = word == wire::record_word(wire::State::kReserved, length);
      at += reserved && length > 0 ? length : wire::kRecordAlignment;
    }
  }
  return found;
}

int install(Gate gate) {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  constexpr auto kCount = static_cast<std::uint8_t>(std::size(kStopped));
  for (std::uint8_t i = 0; i < kCount; ++i) {
    const auto further = static_cast<std::uint8_t>(kCount - i);  // past the ALLOW that follows
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kStopped[i].number, further, 0));
  }
  const std::uint32_t verdict = gate == Gate::kPass ? SECCOMP_RET_ALLOW : SECCOMP_RET_USER_NOTIF;
  constexpr auto kAddress = offsetof(seccomp_data, instruction_pointer);
  const sock_filter rest[] = {
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kAddress),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(wire::kGateReturn), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kAddress + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(wire::kGateReturn >> 32U), 0,
               1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, verdict),
  };
  program.insert(program.end(), std::begin(rest), std::end(rest));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                  SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                                  &filter));
}

Supervisor::Supervisor(int listener, std::function<bool(const StoppedCall&)> before)
    : listener_(listener), before_(std::move(before)), thread_([this] { answer(); }) {}

Supervisor::~Supervisor() {
  if (thread_.joinable()) thread_.join();
  if (listener_ >= 0) close(listener_);
}

std::vector<StoppedCall> Supervisor::stops() {
  thread_.join();
  return std::move(stops_);
}

void Supervisor::answer() {
  // Wakes the stopped process on the same processor: a stop then costs a tenth.
  constexpr auto kSetFlags = _IOW('!', 4, std::uint64_t);
  ioctl(listener_, kSetFlags, 1);
  for (;;) {
    pollfd waiting{listener_, POLLIN, 0};
    if (poll(&waiting, 1, -1) < 0 || (waiting.revents & POLLIN) == 0) return;
    seccomp_notif notification{};
    if (ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0) continue;
    stops_.push_back(understood(notification));
    if (before_ && !before_(stops_.back())) {
      close(listener_);
      listener_ = -1;
      return;
    }
    seccomp_notif_resp answer{notification.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

ShimRunResult run(const Command& command) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) fail("socketpair");
  const int output = memfd_create("output", MFD_CLOEXEC);
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = command.environment;
  environment.emplace_back("PATH=/usr/bin:/bin");
  if (command.log != nullptr) {
    environment.push_back(std::string(wire::kLogVariable) + "=" + command.log->path().string());
    environment.push_back("LD_PRELOAD=" + command.library);
  }
  std::vector<char*> argv;
  std::vector<char*> envp;
  for (std::string& text : arguments) argv.push_back(text.data());
  for (std::string& text : environment) envp.push_back(text.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  const pid_t child = fork();
  if (child == 0) {
    if (!command.directory.empty() && chdir(command.directory.c_str()) != 0) _exit(125);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if (command.user != 0 && setresuid(command.user, command.user, command.user) != 0) _exit(125);
    if (command.gate != Gate::kNone) {
      const int listener = install(command.gate);
      if (listener < 0) _exit(125);
      wire::send_descriptor(sockets[1], listener);
      close(listener);
    }
    if (command.keep == 3) fcntl(3, F_SETFD, 0);  // dup2 onto itself would keep close-on-exec
    if (command.keep > 3) dup2(command.keep, 3);
    execve(argv[0], argv.data(), envp.data());
    _exit(126);
  }
  close(sockets[1]);
  ShimRunResult outcome;
  const int listener = command.gate == Gate::kNone ? -1 : wire::receive_descriptor(sockets[0]);
  close(sockets[0]);
  if (command.started) command.started(child);
  if (command.gate == Gate::kStop && listener >= 0) {
    outcome.stops = Supervisor(listener, command.before).stops();
  } else if (listener >= 0) {
    close(listener);
  }
  waitpid(child, &outcome.wait_status, 0);
  outcome.output.resize(static_cast<std::size_t>(lseek(output, 0, SEEK_END)));
  const ssize_t got = pread(output, outcome.output.data(), outcome.output.size(), 0);
  outcome.output.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  close(output);
  return outcome;
}

}  // namespace assay::shim::testing
