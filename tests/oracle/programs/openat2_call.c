/* openat2, with and without RESOLVE_ flags, reading, creating and cutting. */
#include "must.h"

#include <linux/openat2.h>
static int open2(int dir, const char* path, struct open_how how) {
  return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}
int main(void) {
  int fd = open2(AT_FDCWD, "in.txt", (struct open_how){.flags = O_RDONLY});
  if (fd < 0 && errno == ENOSYS) NOT_HERE("no openat2");
  drain(MUST(fd));
  int data = MUST(open2(AT_FDCWD, "data", (struct open_how){.flags = O_RDONLY | O_DIRECTORY}));
  drain(
      MUST(open2(data, "a.txt", (struct open_how){.flags = O_RDONLY, .resolve = RESOLVE_BENEATH})));
  say_and_close(MUST(open2(data, "new.txt",
                           (struct open_how){.flags = O_WRONLY | O_CREAT | O_EXCL,
                                             .mode = 0644,
                                             .resolve = RESOLVE_NO_SYMLINKS})),
                "n");
  say_and_close(MUST(open2(AT_FDCWD, "old.txt", (struct open_how){.flags = O_WRONLY | O_TRUNC})),
                "cut");
  return 0;
}
