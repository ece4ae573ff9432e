/* argv[1] processes, each of which execs argv[2] with its number; so many at a time. */
#include "must.h"
int main(int argc, char** argv) {
  if (argc != 3) return 64;
  int total = atoi(argv[1]), running = 0, status;
  for (int i = 0; i < total; ++i) {
    if (running == 8) {
      MUST(wait(&status));
      if (status != 0) return 1;
      --running;
    }
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    pid_t pid = (pid_t)MUST(vfork());
    if (pid == 0) {
      execl(argv[2], argv[2], number, NULL);
      _exit(127);
    }
    ++running;
  }
  while (running-- > 0) {
    MUST(wait(&status));
    if (status != 0) return 1;
  }
  return 0;
}
