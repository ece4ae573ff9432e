/* Files that are only cut or made longer, never written to. */
#include "must.h"
int main(void) {
  MUST(truncate("old.txt", 3));
  MUST(truncate("data/a.txt", 1000));
  MUST(ftruncate(MUST(open("data/b.txt", O_WRONLY)), 0));
  MUST(close(MUST(open("in.txt", O_WRONLY | O_TRUNC))));
  int fd = MUST(open("cut.txt", O_RDONLY | O_TRUNC)); /* Linux cuts it all the same */
  MUST(close(fd));
  if (fallocate(MUST(open("kept.txt", O_WRONLY)), 0, 0, 5000) != 0 && errno != EOPNOTSUPP) return 1;
  return 0;
}
