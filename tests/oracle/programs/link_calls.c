/* Hard links: link, linkat, and a link to what a symbolic link means. */
#include "must.h"
int main(void) {
  MUST(link("in.txt", "second.txt"));
  MUST(linkat(AT_FDCWD, "data/a.txt", AT_FDCWD, "third.txt", 0));
  MUST(linkat(AT_FDCWD, "old_link", AT_FDCWD, "fourth.txt", AT_SYMLINK_FOLLOW));
  return 0;
}
