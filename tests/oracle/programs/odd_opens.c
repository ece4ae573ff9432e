/* Opens that are not what they look like. */
#include "must.h"
int main(void) {
  MUST(open("in.txt", O_PATH));                                    /* reads nothing */
  MUST(open("data", O_RDONLY | O_DIRECTORY));                      /* not a file */
  MUST(close(MUST(open("old.txt", O_WRONLY))));                    /* writes nothing */
  MUST(close(MUST(open("data/a.txt", O_WRONLY | O_CREAT, 0644)))); /* nor this */
  MUST(close(MUST(open("empty1.txt", O_RDONLY | O_CREAT, 0644)))); /* makes an empty file */
  MUST(close(MUST(open("empty2.txt", O_WRONLY | O_CREAT, 0644))));
  struct stat status;
  MUST(stat("data/b.txt", &status));
  MUST(access("data/b.txt", R_OK));
  MUST(mkfifo("pipe", 0644));
  int fifo = MUST(open("pipe", O_RDWR));
  say(fifo, "x");
  MUST(unlink("pipe"));
  return 0;
}
