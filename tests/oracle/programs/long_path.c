/* Paths as long as Linux allows: by one long argument and by chdir into the depth. */
#include "must.h"

#include <limits.h>
int main(void) {
  char here[PATH_MAX];
  if (!getcwd(here, sizeof here)) return 1;
  char part[201];
  memset(part, 'p', 200);
  part[200] = 0;
  /* Down by chdir, until a name of 20 to 220 letters makes the longest absolute path there is. */
  long left = PATH_MAX - 1 - (long)strlen(here) - 1;
  for (; left - 201 >= 20; left -= 201) {
    MUST(mkdir(part, 0755));
    MUST(chdir(part));
  }
  char last[256];
  memset(last, 'q', sizeof last);
  last[left] = 0;
  say_and_close(MUST(open(last, O_WRONLY | O_CREAT | O_EXCL, 0644)), "deep");
  say_and_close(MUST(open("short.txt", O_WRONLY | O_CREAT, 0644)), "also deep");
  MUST(rename("short.txt", "renamed.txt"));
  /* Back at the top the same file by its absolute name, and by a long relative one. */
  char absolute[PATH_MAX + 300];
  if (!getcwd(absolute, PATH_MAX)) return 1;
  MUST(chdir(here));
  char relative[PATH_MAX];
  memset(relative, 0, sizeof relative);
  for (int i = 0; i < 1900; ++i) strcat(relative, "./");
  strcat(relative, "in.txt");
  drain(MUST(open(relative, O_RDONLY)));
  strcat(absolute, "/");
  strcat(absolute, last);
  if (strlen(absolute) != PATH_MAX - 1) return 1;
  drain(MUST(open(absolute, O_RDONLY)));
  return 0;
}
