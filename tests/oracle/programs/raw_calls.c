/* System calls by inline assembly, without libc. */
#include "must.h"
static long raw(long number, long a, long b, long c, long d) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}
#define P(text) ((long)(text))
int main(void) {
  char buffer[256];
  long in = raw(SYS_open, P("in.txt"), O_RDONLY, 0, 0);
  long count = raw(SYS_read, in, P(buffer), sizeof buffer, 0);
  long out = raw(SYS_openat, AT_FDCWD, P("out.txt"), O_WRONLY | O_CREAT, 0644);
  if (raw(SYS_write, out, P(buffer), count, 0) != count) return 1;
  if (raw(SYS_creat, P("old.txt"), 0644, 0, 0) < 0) return 1;
  if (raw(SYS_rename, P("out.txt"), P("out2.txt"), 0, 0) != 0) return 1;
  if (raw(SYS_unlink, P("data/a.txt"), 0, 0, 0) != 0) return 1;
  if (raw(SYS_link, P("data/b.txt"), P("linked.txt"), 0, 0) != 0) return 1;
  return 0;
}
