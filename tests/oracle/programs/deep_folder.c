/* Files in a folder whose path is longer than PATH_MAX: the kernel opens them and cannot say where.
   Everything is removed again, so that the tree can be read. */
#include "must.h"

enum { kDepth = 25 };
int main(void) {
  char part[201];
  memset(part, 'p', 200);
  part[200] = 0;
  drain(MUST(open("in.txt", O_RDONLY)));
  say_and_close(MUST(open("out.txt", O_WRONLY | O_CREAT, 0644)), "plain");
  for (int i = 0; i < kDepth; ++i) {
    MUST(mkdir(part, 0755));
    MUST(chdir(part));
  }
  say_and_close(MUST(open("a.txt", O_WRONLY | O_CREAT | O_EXCL, 0644)), "deep");
  drain(MUST(open("a.txt", O_RDONLY)));
  MUST(rename("a.txt", "b.txt"));
  MUST(unlink("b.txt"));
  for (int i = 0; i < kDepth; ++i) {
    MUST(chdir(".."));
    MUST(rmdir(part));
  }
  return 0;
}
