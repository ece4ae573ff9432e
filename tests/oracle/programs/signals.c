/* A timer that interrupts all the time, without SA_RESTART: opens, renames and unlinks of files on
 * a disk are never interrupted by signals, and must not be when somebody watches. */
#include "must.h"

#include <signal.h>
#include <sys/time.h>
static volatile int ticks;
static void tick(int unused) {
  (void)unused;
  ++ticks;
}
int main(void) {
  struct sigaction action = {.sa_handler = tick};
  MUST(sigaction(SIGALRM, &action, NULL));
  struct itimerval often = {{0, 300}, {0, 300}};
  MUST(setitimer(ITIMER_REAL, &often, NULL));
  for (int i = 0; i < 600 || (ticks < 20 && i < 100000); ++i) {
    MUST(close(MUST(open("old.txt", O_WRONLY | O_APPEND))));
    MUST(close(MUST(open("in.txt", O_RDONLY))));
    MUST(close(MUST(open("new.txt", O_WRONLY | O_CREAT | O_TRUNC, 0644))));
    MUST(rename("new.txt", "newer.txt"));
    if (i % 2) MUST(unlink("newer.txt"));
  }
  struct itimerval never = {0};
  MUST(setitimer(ITIMER_REAL, &never, NULL));
  int fd = MUST(open("newer.txt", O_WRONLY | O_CREAT | O_TRUNC, 0644));
  MUST(write(fd, "n", 1));
  return 0;
}
