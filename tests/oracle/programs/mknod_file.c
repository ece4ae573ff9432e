/* mknod makes a file without opening it. */
#include "must.h"
int main(void) {
  MUST(mknod("node.txt", S_IFREG | 0644, 0));
  say_and_close(MUST(open("node.txt", O_WRONLY)), "a node with content");
  MUST(mknodat(AT_FDCWD, "data/empty.txt", S_IFREG | 0644, 0));
  return 0;
}
