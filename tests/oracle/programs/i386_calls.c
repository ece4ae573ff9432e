/* A 32-bit program (int 0x80) without any library, so that it is built without a 32-bit libc.
 * Built for 64 bits as well: there the same instruction reaches the same 32-bit calls. */
static long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(number), "b"(a), "c"(b), "d"(c)
                   : "memory"
#ifdef __x86_64__
                     ,
                     "r8", "r9", "r10", "r11"
#endif
  );
  return (int)result;
}
#define P(text) ((long)(text))
enum { kExit = 1, kRead = 3, kWrite = 4, kOpen = 5, kCreat = 8, kUnlink = 10, kRename = 38 };
static char buffer[256]; /* static: a 64-bit stack is out of reach of a 32-bit call */

static int work(void) {
  long in = call(kOpen, P("in.txt"), 0, 0);
  long count = call(kRead, in, P(buffer), sizeof buffer);
  long out = call(kOpen, P("out32.txt"), 0101, 0644);
  if (in < 0) return in == -38 ? 77 : 1; /* ENOSYS: this kernel runs no 32-bit calls */
  if (call(kWrite, out, P(buffer), count) != count) return 2;
  if (call(kCreat, P("old.txt"), 0644, 0) < 0) return 3;
  if (call(kRename, P("data/a.txt"), P("data/renamed32.txt"), 0) != 0) return 4;
  if (call(kUnlink, P("data/b.txt"), 0, 0) != 0) return 5;
  return 0;
}
void _start(void) {
  call(kExit, work(), 0, 0);
  __builtin_unreachable();
}
