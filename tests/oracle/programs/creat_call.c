/* creat, by libc and by its own system call, of a new file and of an old one. */
#include "must.h"
int main(void) {
  say_and_close(MUST(creat("new1.txt", 0644)), "1");
  say_and_close(MUST(syscall(SYS_creat, "new2.txt", 0644)), "2");
  say_and_close(MUST(syscall(SYS_creat, "old.txt", 0644)), "3");
  return 0;
}
