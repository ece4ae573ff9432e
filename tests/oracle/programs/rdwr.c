/* Opened for both: one is changed, one is not. */
#include "must.h"
int main(void) {
  char c;
  int same = MUST(open("in.txt", O_RDWR)), changed = MUST(open("old.txt", O_RDWR));
  MUST(read(same, &c, 1));
  MUST(read(changed, &c, 1));
  MUST(pwrite(changed, "!", 1, 0));
  MUST(close(MUST(open("data/a.txt", O_RDWR | O_APPEND))));
  int both = MUST(open("new.txt", O_RDWR | O_CREAT | O_TRUNC, 0644));
  say(both, "text");
  MUST(pread(both, &c, 1, 0));
  int emptied = MUST(open("data/b.txt", O_RDWR | O_TRUNC)); /* its content is never read */
  say(emptied, "b2");
  return 0;
}
