/* Calls that fail change nothing and read nothing. */
#include "must.h"
#define FAILS(call) \
  if ((call) != -1) return __LINE__ % 200 + 1
int main(void) {
  FAILS(open("missing.txt", O_RDONLY));
  FAILS(open("in.txt", O_WRONLY | O_CREAT | O_EXCL, 0644));
  FAILS(open("in.txt/below", O_RDONLY));
  FAILS(open("data", O_WRONLY));
  FAILS(open("data", O_RDWR | O_TRUNC));
  FAILS(open("no/such/dir/new.txt", O_WRONLY | O_CREAT, 0644));
  FAILS(rename("missing.txt", "in.txt"));
  FAILS(rename("in.txt", "data"));
  FAILS(rename("in.txt", "no/such/dir"));
  FAILS((int)syscall(SYS_renameat2, AT_FDCWD, "in.txt", AT_FDCWD, "old.txt", 1));
  FAILS(unlink("missing.txt"));
  FAILS(unlink("data"));
  FAILS(rmdir("data"));
  FAILS(link("in.txt", "old.txt"));
  FAILS(link("missing.txt", "linked.txt"));
  FAILS(truncate("data", 0));
  FAILS(truncate("in.txt", -1));
  FAILS(execl("./in.txt", "in.txt", NULL));
  FAILS(execl("./missing", "missing", NULL));
  FAILS(open((const char*)8, O_RDONLY));
  FAILS(open("", O_RDONLY));
  FAILS((int)syscall(SYS_openat, 99, "in.txt", O_WRONLY | O_TRUNC));
  FAILS(open("loop", O_WRONLY | O_TRUNC)); /* a symbolic link to itself */
  return 0;
}
