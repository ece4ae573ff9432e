/* One of many processes: reads one file, and every hundredth writes one. No library. */
#define AT_FDCWD -100
static long call(long number, long a, long b, long c, long d) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}
__attribute__((used)) static void work(long* stack) {
  const char* number = (const char*)stack[2];
  long length = 0, failed = 0;
  while (number[length]) ++length;
  failed |= call(257, AT_FDCWD, (long)"in.txt", 0, 0) < 0;
  if (length >= 2 && number[length - 1] == '0' && number[length - 2] == '0') {
    char name[32] = "out_";
    for (long i = 0; i <= length; ++i) name[4 + i] = number[i];
    long fd = call(257, AT_FDCWD, (long)name, 0101, 0644);
    failed |= call(1, fd, (long)number, length, 0) != length;
  }
  call(231, failed, 0, 0, 0);
  __builtin_unreachable();
}
__asm__(".globl _start\n_start: mov %rsp, %rdi\nand $-16, %rsp\ncall work\n");
