/* Does with files what redirecting.c changes. */
#define _GNU_SOURCE
#include "../../oracle/programs/must.h"

static void show(int file) {
  char text[100];
  ssize_t length = MUST(read(file, text, sizeof text));
  fwrite(text, 1, (size_t)length, stdout);
  MUST(close(file));
}

int main(void) {
  show(MUST(open("a", O_RDONLY)));
  show(MUST(openat(AT_FDCWD, "a", O_RDONLY)));
  char line[100];
  FILE* conf = fopen("conf", "r");
  if (conf == NULL || fgets(line, sizeof line, conf) == NULL) return 1;
  fputs(line, stdout);
  say_and_close(MUST(open("made", O_WRONLY | O_CREAT, 0644)), "x");
  MUST(rename("made", "moved"));
  MUST(unlink("moved"));
  MUST(chdir("/"));
  return 0;
}
