/* A family of processes, most of which touch no file: a child that exits with 3, one that is killed,
 * a grandchild whose parent is gone before it begins. Prints "pid parent wait-status" of each. */
#include "../../oracle/programs/must.h"

#include <signal.h>

static void print(pid_t pid, pid_t parent, int status) {
  printf("%d %d %d\n", pid, parent, status);
  fflush(stdout);
}

int main(void) {
  int status;
  pid_t child = (pid_t)MUST(fork());
  if (child == 0) _exit(3);
  MUST(waitpid(child, &status, 0));
  print(child, getpid(), status);

  child = (pid_t)MUST(fork());
  if (child == 0) exit(4);
  MUST(waitpid(child, &status, 0));
  print(child, getpid(), status);

  child = (pid_t)MUST(fork());
  if (child == 0) {
    usleep(500000); /* long enough to be noticed by every tracer */
    raise(SIGKILL);
  }
  MUST(waitpid(child, &status, 0));
  print(child, getpid(), status);

  child = (pid_t)MUST(fork());
  if (child == 0) {
    pid_t parent = getpid();
    if (MUST(fork()) == 0) {
      usleep(300000);
      print(getpid(), parent, 5 << 8);
      _exit(5);
    }
    _exit(0);
  }
  MUST(waitpid(child, &status, 0));
  print(child, getpid(), status);

  child = (pid_t)MUST(fork());
  if (child == 0) {
    execlp("false", "false", NULL);
    _exit(9);
  }
  MUST(waitpid(child, &status, 0));
  print(child, getpid(), status);
  return 0;
}
