/* One process that reads and writes through a link to a folder, and turns the link meanwhile: by
 * removing and making it, by renaming another over it, by swapping two. */
#include "must.h"

static void use(const char* content) {
  drain(MUST(open("latest/cfg", O_RDONLY)));
  say_and_close(MUST(open("latest/out.txt", O_WRONLY | O_CREAT | O_TRUNC, 0644)), content);
}
int main(void) {
  use("1");
  MUST(unlink("latest"));
  MUST(symlink("run2", "latest"));
  use("2");
  MUST(symlinkat("run3", AT_FDCWD, "next"));
  MUST(rename("next", "latest"));
  use("3");
  MUST(symlink("run4", "next"));
  MUST(syscall(SYS_renameat2, AT_FDCWD, "next", AT_FDCWD, "latest", 2 /* EXCHANGE */));
  use("4");
  return 0;
}
