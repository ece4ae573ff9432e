/* Files opened by way of /proc: descriptors, the working directory, the root. */
#include "must.h"
int main(void) {
  char path[256];
  int held = MUST(open("in.txt", O_PATH));
  snprintf(path, sizeof path, "/proc/self/fd/%d", held);
  drain(MUST(open(path, O_RDONLY)));
  drain(MUST(open("/proc/self/cwd/data/a.txt", O_RDONLY)));
  snprintf(path, sizeof path, "/proc/%d/cwd/made.txt", getpid());
  say_and_close(MUST(open(path, O_WRONLY | O_CREAT, 0644)), "made");
  snprintf(path, sizeof path, "/dev/fd/%ld", MUST(open("old.txt", O_RDONLY)));
  say_and_close(MUST(open(path, O_WRONLY | O_TRUNC)), "cut by its number");
  return 0;
}
