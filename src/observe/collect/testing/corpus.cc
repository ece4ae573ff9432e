// corpus: small programs for the collectors' tests, selected by the first argument, for what shells
// cannot do: exec from a thread, vfork, processes that request not to be traced, signals. Built
// dynamically and statically linked. Exits with 0 when everything worked.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <string>

namespace {

char* const* environment = nullptr;

void need(bool condition, const char* what) {
  if (condition) return;
  ::perror(what);
  ::_exit(1);
}

void read_file(const char* path) {
  const int fd = ::open(path, O_RDONLY);
  need(fd >= 0, path);
  ::close(fd);
}

void write_file(const char* path) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  need(fd >= 0, path);
  need(::write(fd, "x", 1) == 1, path);
  ::close(fd);
}

int wait_for(pid_t child) {
  int status = 0;
  need(::waitpid(child, &status, __WALL) == child, "waitpid");
  return status;
}

void* in_thread(void* path) {
  read_file(static_cast<const char*>(path));
  return nullptr;
}

void* execute(void* program) {
  char* arguments[] = {static_cast<char*>(program), nullptr};
  ::execve(arguments[0], arguments, environment);
  ::_exit(1);
}

int threads(char** files) {
  for (; *files != nullptr; ++files) {
    pthread_t thread{};
    need(::pthread_create(&thread, nullptr, in_thread, *files) == 0, "pthread_create");
    ::pthread_join(thread, nullptr);
  }
  return 0;
}

// The program is executed by a thread while the first one waits.
int thread_exec(char** arguments) {
  pthread_t thread{};
  need(::pthread_create(&thread, nullptr, execute, arguments[0]) == 0, "pthread_create");
  for (;;) ::pause();
}

int vfork_opens(char** arguments) {
  const pid_t child = ::vfork();
  if (child == 0) {
    ::syscall(SYS_openat, AT_FDCWD, arguments[0], O_RDONLY);
    ::execve(arguments[1], arguments + 1, environment);
    ::_exit(1);
  }
  return wait_for(child) == 0 ? 0 : 1;
}

// A tree of processes: each forks two more, `depth` levels deep, and reads the file.
void tree(int depth, const char* path) {
  read_file(path);
  if (depth == 0) return;
  pid_t children[2];
  for (pid_t& child : children) {
    child = ::fork();
    need(child >= 0, "fork");
    if (child == 0) {
      tree(depth - 1, path);
      ::_exit(0);
    }
  }
  for (const pid_t child : children) need(wait_for(child) == 0, "child");
}

int untraced(char** arguments) {
  const long child = ::syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, nullptr, nullptr, nullptr, 0);
  if (child == 0) {
    read_file(arguments[0]);
    ::_exit(0);
  }
  if (wait_for(static_cast<pid_t>(child)) != 0) return 1;
  struct {
    unsigned long long flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
  } args{};
  args.flags = CLONE_UNTRACED;
  args.exit_signal = SIGCHLD;
  const long second = ::syscall(435, &args, sizeof args);
  if (second == 0) {
    read_file(arguments[1]);
    ::_exit(0);
  }
  return second > 0 && wait_for(static_cast<pid_t>(second)) == 0 ? 0 : 1;
}

volatile sig_atomic_t signals_seen = 0;
void on_signal(int) {
  signals_seen = signals_seen + 1;
}

int signals(char** arguments) {
  ::signal(SIGUSR1, on_signal);
  for (int i = 0; i < 3; ++i) {
    ::raise(SIGUSR1);
    read_file(arguments[0]);
  }
  // Stopped and continued, as by a shell's run control.
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    read_file(arguments[0]);
    ::_exit(7);
  }
  int status = 0;
  need(::waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status), "stop");
  need(WSTOPSIG(status) == SIGSTOP, "SIGSTOP");
  ::kill(child, SIGCONT);
  need(::waitpid(child, &status, 0) == child && WIFEXITED(status), "exit");
  return signals_seen == 3 && WEXITSTATUS(status) == 7 ? 0 : 1;
}

// A process that outlives its parent and works on.
int orphan(char** arguments) {
  if (::fork() == 0) {
    ::setsid();
    ::usleep(100'000);
    write_file(arguments[0]);
    ::_exit(0);
  }
  return 0;
}

int unnamed(char** arguments) {
  const int fd = ::open(arguments[0], O_TMPFILE | O_RDWR, 0644);
  need(fd >= 0, "O_TMPFILE");
  need(::write(fd, "x", 1) == 1, "write");
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  need(::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, arguments[1], AT_SYMLINK_FOLLOW) == 0, "linkat");
  return 0;
}

// A program that installs its own seccomp filter, which forbids deleting and allows everything
// else.
int sandboxed(char** arguments) {
  sock_filter forbid[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unlink, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{4, forbid};
  need(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  need(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
  read_file(arguments[0]);
  return ::syscall(SYS_unlink, arguments[0]) == -1 && errno == EACCES ? 0 : 1;
}

// Opens and closes, timed: nanoseconds per pair on standard output.
int opens(char** arguments) {
  const int count = ::atoi(arguments[0]);
  timespec begin{};
  timespec end{};
  ::clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < count; ++i) ::close(::open(arguments[1], O_RDONLY));
  ::clock_gettime(CLOCK_MONOTONIC, &end);
  ::printf("%.0f\n", (static_cast<double>(end.tv_sec - begin.tv_sec) * 1e9 +
                      static_cast<double>(end.tv_nsec - begin.tv_nsec)) /
                         count);
  return 0;
}

}  // namespace

int main(int argc, char** argv, char** envp) {
  environment = envp;
  if (argc < 3) return 64;
  const std::string what = argv[1];
  char** arguments = argv + 2;
  if (what == "read") return read_file(arguments[0]), 0;
  if (what == "write") return write_file(arguments[0]), 0;
  if (what == "threads") return threads(arguments);
  if (what == "thread-exec") return thread_exec(arguments);
  if (what == "vfork") return vfork_opens(arguments);
  if (what == "tree") return tree(::atoi(arguments[0]), arguments[1]), 0;
  if (what == "untraced") return untraced(arguments);
  if (what == "signals") return signals(arguments);
  if (what == "orphan") return orphan(arguments);
  if (what == "unnamed") return unnamed(arguments);
  if (what == "sandboxed") return sandboxed(arguments);
  if (what == "opens" && argc > 3) return opens(arguments);
  return 64;
}
