/* 30 processes at once, each creates ten files, reads them and one of all, and renames two. */
#include "must.h"
int main(void) {
  for (int process = 0; process < 30; ++process) {
    if (MUST(fork()) != 0) continue;
    for (int i = 0; i < 10; ++i) {
      char name[64], to[64];
      snprintf(name, sizeof name, "data/p%d_%d.txt", process, i);
      snprintf(to, sizeof to, "data/p%d_%d.done", process, i);
      say_and_close(MUST(open(name, O_WRONLY | O_CREAT | O_EXCL, 0644)), name);
      drain(MUST(open(name, O_RDONLY)));
      if (i < 2) MUST(rename(name, to));
    }
    drain(MUST(open("in.txt", O_RDONLY)));
    _exit(0);
  }
  int status, worst = 0;
  while (wait(&status) > 0) worst |= status;
  return worst != 0;
}
