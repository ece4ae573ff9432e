/* A daemon: the root ends at once, grandchildren go on, read and write. */
#include "must.h"
int main(void) {
  if (MUST(fork()) > 0) _exit(0);
  MUST(setsid());
  if (MUST(fork()) > 0) _exit(0);
  int null = MUST(open("/dev/null", O_RDWR));
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  usleep(150000);
  drain(MUST(open("in.txt", O_RDONLY)));
  say_and_close(MUST(open("late.txt", O_WRONLY | O_CREAT, 0644)), "late");
  say_and_close(MUST(open("old.txt", O_WRONLY | O_APPEND)), "later");
  if (MUST(fork()) == 0) {
    usleep(50000);
    say_and_close(MUST(open("latest.txt", O_WRONLY | O_CREAT, 0644)), "latest");
    MUST(rename("latest.txt", "done.txt"));
  }
  return 0;
}
