/* Locks itself in: from then on the kernel ends it at any call that it does not make by itself.
 * argv[1] says how: prctl, seccomp, raw (the instruction itself), thread (from a second thread). Then
 * it works with files, and a child does the same; with argv[2] = exec the child is a new program.
 * Says "finished" if all of that worked. */
#include "../../oracle/programs/must.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>

#define ALLOW(number)                                     \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),    \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    /* What work() does, and the C library for it. */
    ALLOW(SYS_openat), ALLOW(SYS_creat), ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_close),
    ALLOW(SYS_rename), ALLOW(SYS_unlink), ALLOW(SYS_newfstatat), ALLOW(SYS_brk), ALLOW(SYS_mmap),
    ALLOW(SYS_munmap), ALLOW(SYS_getrandom), ALLOW(SYS_exit_group), ALLOW(SYS_exit),
    /* Processes and threads. */
    ALLOW(SYS_clone), ALLOW(SYS_wait4), ALLOW(SYS_set_robust_list), ALLOW(SYS_rseq),
    ALLOW(SYS_futex), ALLOW(SYS_madvise), ALLOW(SYS_rt_sigprocmask),
    /* The beginning of a new program. */
    ALLOW(SYS_execve), ALLOW(SYS_arch_prctl), ALLOW(SYS_set_tid_address), ALLOW(SYS_mprotect),
    ALLOW(SYS_prlimit64), ALLOW(SYS_pread64), ALLOW(SYS_access), ALLOW(SYS_fstat),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
static const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

static long raw(long number, long a, long b, long c) {
  long result;
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

static void work(const char* name) {
  char made[64], moved[64];
  snprintf(made, sizeof made, "%s.made", name);
  snprintf(moved, sizeof moved, "%s.moved", name);
  drain(MUST(open("in.txt", O_RDONLY)));
  drain(MUST(open("in.txt", O_RDONLY)));
  say_and_close(MUST(open(made, O_WRONLY | O_CREAT | O_TRUNC, 0644)), "text");
  MUST(rename(made, moved));
  say_and_close(MUST(creat(made, 0644)), "text");
  MUST(unlink(made));
  FILE* file = fopen("in.txt", "r");
  if (file == NULL || fgetc(file) == EOF || fclose(file) != 0) exit(1);
}

static void* lock(void* how) {
  MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  if (strcmp(how, "prctl") == 0) MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
  if (strcmp(how, "seccomp") == 0) MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
  if (strcmp(how, "raw") == 0 && raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program) != 0) {
    exit(1);
  }
  if (strcmp(how, "thread") == 0) {
    MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
  }
  return NULL;
}

int main(int argc, char** argv) {
  const char* how = argv[1];
  if (strcmp(how, "inner") == 0) {
    work("inner");
    return 0;
  }
  drain(MUST(open("in.txt", O_RDONLY))); /* while it is still free */
  if (strcmp(how, "thread") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, lock, (void*)how) != 0) return 1;
    pthread_join(thread, NULL);
  } else {
    lock((void*)how);
  }
  work("self");
  pid_t child = (pid_t)MUST(fork());
  if (child == 0) {
    if (argc > 2) {
      char* words[] = {argv[0], "inner", NULL};
      extern char** environ;
      MUST(execve(argv[0], words, environ));
    }
    work("child");
    _exit(0);
  }
  int status;
  MUST(waitpid(child, &status, 0));
  if (status != 0) {
    fputs("the child did not end well\n", stderr);
    return 1;
  }
  puts("finished");
  return 0;
}
