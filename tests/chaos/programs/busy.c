/* A command with much to do with files: argv[1] rounds of creating, reading, overwriting, renaming
 * and removing; every tenth round is done by a child that is this program again. Says "finished"
 * only if every call worked. */
#include "../../oracle/programs/must.h"

static void round_of(int number) {
  char name[64], other[64];
  snprintf(name, sizeof name, "made_%d.txt", number);
  snprintf(other, sizeof other, "kept_%d.txt", number);
  say_and_close(MUST(open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644)), name);
  drain(MUST(open(name, O_RDONLY)));
  drain(MUST(open("in.txt", O_RDONLY)));
  say_and_close(MUST(open("log.txt", O_WRONLY | O_CREAT | O_APPEND, 0644)), "line\n");
  MUST(rename(name, other));
  say_and_close(MUST(open("passing.txt", O_WRONLY | O_CREAT | O_TRUNC, 0644)), "x");
  if (number % 2 == 0) MUST(unlink("passing.txt"));
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 0;
  if (argc > 2) { /* a child: its one round */
    round_of(atoi(argv[2]));
    return 0;
  }
  for (int i = 0; i < rounds; ++i) {
    if (i % 10 != 9) {
      round_of(i);
      usleep(500);
      continue;
    }
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
      execl("/proc/self/exe", argv[0], "1", number, NULL);
      perror("exec");
      _exit(1);
    }
    int status;
    MUST(waitpid(child, &status, 0));
    if (status != 0) {
      fprintf(stderr, "child %d: status %d\n", i, status);
      return 1;
    }
  }
  puts("finished");
  return 0;
}
