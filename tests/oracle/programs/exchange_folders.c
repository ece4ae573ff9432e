/* Two folders change places, and a folder and a file. */
#include "must.h"
static void exchange(const char* a, const char* b) {
  MUST(syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2 /* EXCHANGE */));
}
int main(void) {
  exchange("data", "other");
  drain(MUST(open("data/a.txt", O_RDONLY)));
  exchange("one", "old.txt");
  return 0;
}
