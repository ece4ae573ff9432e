/* RENAME_EXCHANGE: two old files trade names. */
#include "must.h"
int main(void) {
  if (syscall(SYS_renameat2, AT_FDCWD, "in.txt", AT_FDCWD, "data/a.txt", 2) != 0) {
    if (errno == EINVAL) NOT_HERE("no RENAME_EXCHANGE on this file system");
    return 1;
  }
  return 0;
}
