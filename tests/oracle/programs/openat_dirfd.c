/* openat, renameat, unlinkat, linkat with directory descriptors, after a chdir elsewhere. */
#include "must.h"
int main(void) {
  int data = MUST(open("data", O_RDONLY | O_DIRECTORY));
  int top = MUST(open(".", O_PATH | O_DIRECTORY));
  MUST(chdir("/"));
  drain(MUST(openat(data, "a.txt", O_RDONLY)));
  drain(MUST(openat(top, "in.txt", O_RDONLY)));
  say_and_close(MUST(openat(data, "new.txt", O_WRONLY | O_CREAT, 0644)), "new");
  MUST(renameat(data, "new.txt", top, "moved.txt"));
  MUST(unlinkat(data, "b.txt", 0));
  MUST(linkat(top, "old.txt", data, "linked.txt", 0));
  return 0;
}
