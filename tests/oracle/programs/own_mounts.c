/* In a separate mount namespace a folder stands at two places, and hides what was at one. */
#include "must.h"

#include <sched.h>
#include <sys/mount.h>
int main(void) {
  if (unshare(CLONE_NEWNS) != 0) NOT_HERE("no mount namespaces");
  MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
  MUST(mount("sub", "mnt", NULL, MS_BIND, NULL));
  drain(MUST(open("mnt/x", O_RDONLY)));
  say_and_close(MUST(creat("mnt/made.txt", 0644)), "made");
  drain(MUST(open("sub/x", O_RDONLY)));
  return 0;
}
