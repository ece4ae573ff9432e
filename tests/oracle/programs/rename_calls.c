/* Rename chains: of an old file, of a new one, onto an old one, by renameat2. */
#include "must.h"
int main(void) {
  MUST(rename("in.txt", "step1.txt"));
  MUST(rename("step1.txt", "data/step2.txt"));
  MUST(rename("data/step2.txt", "step3.txt"));
  say_and_close(MUST(creat("new1.txt", 0644)), "new");
  MUST(rename("new1.txt", "new2.txt"));
  MUST(syscall(SYS_renameat2, AT_FDCWD, "new2.txt", AT_FDCWD, "new3.txt", 1 /* NOREPLACE */));
  MUST(rename("data/a.txt", "data/b.txt"));
  return 0;
}
