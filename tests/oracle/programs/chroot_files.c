/* Another root directory: "/in.txt" is not what it seems. For root. */
#include "must.h"
int main(void) {
  if (chroot("data") != 0) NOT_HERE("chroot is not allowed");
  MUST(chdir("/"));
  drain(MUST(open("/a.txt", O_RDONLY)));
  say_and_close(MUST(openat(AT_FDCWD, "/made.txt", O_WRONLY | O_CREAT, 0644)), "inside");
  say_and_close(MUST(openat(AT_FDCWD, "/b.txt", O_WRONLY | O_TRUNC)), "cut");
  return 0;
}
