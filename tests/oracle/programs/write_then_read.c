/* Opened for writing, then read through another descriptor, and only then written to: what was read
 * is the old content. */
#include "must.h"
int main(void) {
  int out = MUST(open("old.txt", O_WRONLY));
  drain(MUST(open("old.txt", O_RDONLY)));
  say_and_close(out, "changed");
  return 0;
}
