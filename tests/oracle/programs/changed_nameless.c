/* Read, removed, and changed through /proc when it has no name any more. */
#include "must.h"
int main(void) {
  int in = MUST(open("old.txt", O_RDONLY));
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", in);
  MUST(unlink("old.txt"));
  say_and_close(MUST(open(link, O_RDWR)), "changed");
  drain(in);
  return 0;
}
