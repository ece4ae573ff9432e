/* Descriptors copied by dup, dup2, dup3, F_DUPFD; all but the copies closed by close_range. */
#include "must.h"
int main(void) {
  int in = MUST(open("in.txt", O_RDONLY)), out = MUST(open("out.txt", O_WRONLY | O_CREAT, 0644));
  int in2 = MUST(fcntl(in, F_DUPFD_CLOEXEC, 100)), out2 = MUST(dup(out));
  MUST(dup2(out2, 200));
  MUST(dup3(200, 201, O_CLOEXEC));
  syscall(SYS_close_range, 3u, 99u, 0u);
  char buffer[64];
  long count = MUST(read(in2, buffer, sizeof buffer));
  MUST(write(201, buffer, count));
  /* Numbers are used again by other files. */
  say(MUST(open("out3.txt", O_WRONLY | O_CREAT, 0644)), "third");
  drain(MUST(open("data/a.txt", O_RDONLY)));
  return 0;
}
