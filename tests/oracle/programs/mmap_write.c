/* Content changed through a shared mapping only, of an old file and of a new one; and a mapping
 * that could write and does not. */
#include "must.h"

#include <sys/mman.h>
static char* mapped(int fd) {
  char* at = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) exit(1);
  return at;
}
int main(void) {
  int old = MUST(open("old.txt", O_RDWR));
  char* at = mapped(old);
  MUST(close(old));
  memcpy(at, "MAPPED", 6);
  int fresh = MUST(open("new.txt", O_RDWR | O_CREAT, 0644));
  MUST(ftruncate(fresh, 16));
  memcpy(mapped(fresh), "NEW", 3);
  volatile char seen = mapped(MUST(open("in.txt", O_RDWR)))[0];
  (void)seen;
  MUST(munmap(at, 16));
  return 0;
}
