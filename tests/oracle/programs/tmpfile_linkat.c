/* O_TMPFILE: one that stays by linkat through /proc, one by AT_EMPTY_PATH if allowed, one that
 * goes. */
#include "must.h"
int main(void) {
  int fd = open(".", O_TMPFILE | O_RDWR, 0644);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
    NOT_HERE("no O_TMPFILE on this file system");
  say(MUST(fd), "born without a name");
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  MUST(linkat(AT_FDCWD, path, AT_FDCWD, "named.txt", AT_SYMLINK_FOLLOW));
  int other = MUST(open("data", O_TMPFILE | O_WRONLY, 0644));
  say(other, "second");
  if (linkat(other, "", AT_FDCWD, "data/named2.txt", AT_EMPTY_PATH) != 0) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", other);
    MUST(linkat(AT_FDCWD, path, AT_FDCWD, "data/named2.txt", AT_SYMLINK_FOLLOW));
  }
  say(MUST(open(".", O_TMPFILE | O_WRONLY, 0644)), "never named");
  return 0;
}
