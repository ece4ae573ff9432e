// Process: starts a program without a shell and waits for it. All programs are started here, except
// the command of `assay run`, which needs system calls between fork and exec
// (observe/collect/process/launch.h). capture.h reads a program's output.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/process/environment.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::base {

// A descriptor that the program gets: a copy of an open one, or a newly opened file.
struct Redirection {
  int descriptor = 0;
  int from = -1;  // an open descriptor, or one made by an earlier redirection; -1: `path`
  std::string path = {};
  int flags = O_RDONLY;
  mode_t mode = 0666;
};

// "/dev/null", for reading and writing.
Redirection from_null(int descriptor);

// Every signal, for ProcessOptions::default_signals.
sigset_t all_signals();

struct ProcessOptions {
  std::vector<std::string> arguments;  // the first is the program, looked up in PATH
  Environment environment = {};        // its PATH is searched
  std::string program = {};            // path of the program, if already known
  std::filesystem::path directory = {};
  std::vector<Redirection> redirections = {};  // in order; other descriptors are inherited
  // Starts it in its own process group, so that it can be killed with everything it starts; Ctrl-C
  // at the terminal then does not reach it.
  bool own_group = true;
  // Resets these signals to their default actions and unblocks all. Nothing: both are inherited.
  std::optional<sigset_t> default_signals = all_signals();
};

// For poll(2): the time left, rounded up; 0 when the deadline has passed.
int poll_timeout_ms(std::chrono::steady_clock::time_point deadline);

// How a process ended.
struct Exit {
  int wait_status = 0;  // see exit_status.h
  rusage usage = {};    // including the children that it waited for
};

class Process {
 public:
  // Fails if the program cannot be started, usually because it is not installed.
  static Result<Process> start(ProcessOptions options);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();  // kills it, with its group, unless it was waited for

  [[nodiscard]] pid_t pid() const { return pid_; }
  // A pidfd, readable when the process has exited; -1 if there is none, because the kernel is older
  // than 5.3 or this process has too many open files.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }

  // Waits until it has exited, or until the deadline (then nothing). Call only once.
  Exit wait();
  std::optional<Exit> wait_until(std::chrono::steady_clock::time_point deadline);
  // Signals the whole group if it has its own, even after the process itself has exited.
  void signal(int number) const;

 private:
  friend class PreparedProcess;
  Process(pid_t pid, bool own_group);
  // wait_until() without a pidfd.
  std::optional<Exit> poll_until(std::chrono::steady_clock::time_point deadline);
  void end();

  pid_t pid_ = -1;
  bool own_group_ = false;
  bool waited_ = false;
  UniqueFd descriptor_;
};

// A process that is ready to be started, for callers that measure from that moment on.
class PreparedProcess {
 public:
  explicit PreparedProcess(ProcessOptions options);
  PreparedProcess(const PreparedProcess&) = delete;
  PreparedProcess& operator=(const PreparedProcess&) = delete;
  ~PreparedProcess();

  // The process, or errno.
  tl::expected<Process, int> start();

 private:
  ProcessOptions options_;
  std::vector<char*> arguments_;
  std::vector<char*> environment_;
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace assay::base
