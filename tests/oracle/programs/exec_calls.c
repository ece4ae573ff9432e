/* fexecve and execveat of programs in the tree: by descriptor, and relative to a directory. */
#include "must.h"
extern char** environ;
static void child(int which) {
  if (MUST(fork()) == 0) {
    char* words[] = {"copy", "in.txt", which == 0 ? "by_fexecve.txt" : "by_execveat.txt", NULL};
    if (which == 0) fexecve(MUST(open("bin/copy", O_PATH | O_CLOEXEC)), words, environ);
    syscall(SYS_execveat, MUST(open("bin", O_PATH | O_DIRECTORY | O_CLOEXEC)), "copy2", words,
            environ, 0);
    _exit(1);
  }
  int status;
  MUST(wait(&status));
  if (status != 0) exit(1);
}
int main(void) {
  child(0);
  child(1);
  return 0;
}
