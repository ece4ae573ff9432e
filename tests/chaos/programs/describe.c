/* Prints what a process inherits: descriptors, signals, limits, and so on. */
#include "../../oracle/programs/must.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

int main(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) printf("argument %s\n", argv[i]);
  for (int fd = 0; fd < 1024; ++fd) {
    int flags = fcntl(fd, F_GETFD);
    if (flags != -1) printf("descriptor %d %d %x\n", fd, flags, fcntl(fd, F_GETFL));
  }
  sigset_t mask, pending;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  sigpending(&pending);
  for (int number = 1; number < 65; ++number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0) continue;
    int ignored = action.sa_handler == SIG_IGN, blocked = sigismember(&mask, number);
    if (ignored || blocked || sigismember(&pending, number) || action.sa_handler != SIG_DFL) {
      printf("signal %d ignored %d blocked %d\n", number, ignored, blocked);
    }
  }
  for (int limit = 0; limit < RLIM_NLIMITS; ++limit) {
    struct rlimit value;
    getrlimit(limit, &value);
    printf("limit %d %lu %lu\n", limit, (unsigned long)value.rlim_cur,
           (unsigned long)value.rlim_max);
  }
  mode_t mask_of_files = umask(0);
  char cwd[4096];
  printf("umask %o\ncwd %s\nnice %d\n", mask_of_files, getcwd(cwd, sizeof cwd),
         getpriority(PRIO_PROCESS, 0));
  printf("scheduler %d\nids %d %d %d %d\n", sched_getscheduler(0), getuid(), geteuid(), getgid(),
         getegid());
  int subreaper = -1, death = -1;
  prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
  prctl(PR_GET_PDEATHSIG, &death);
  printf("subreaper %d\ndeath signal %d\ndumpable %d\n", subreaper, death, prctl(PR_GET_DUMPABLE));
  cpu_set_t processors;
  sched_getaffinity(0, sizeof processors, &processors);
  printf("processors %d\n", CPU_COUNT(&processors));
  printf("group is mine %d\nsession is mine %d\n", getpgrp() == getpid(), getsid(0) == getpid());
  return 0;
}
