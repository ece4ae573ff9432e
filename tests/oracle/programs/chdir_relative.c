/* Relative paths after chdir and fchdir, "." and "..". */
#include "must.h"
int main(void) {
  int top = MUST(open(".", O_RDONLY | O_DIRECTORY));
  MUST(chdir("data"));
  drain(MUST(open("a.txt", O_RDONLY)));
  drain(MUST(open("../in.txt", O_RDONLY)));
  say_and_close(MUST(creat("made_in_data.txt", 0644)), "x");
  MUST(mkdir("deeper", 0755));
  MUST(chdir("./deeper/../deeper"));
  say_and_close(MUST(open("made_deeper.txt", O_WRONLY | O_CREAT, 0644)), "y");
  MUST(rename("made_deeper.txt", "moved_deeper.txt"));
  MUST(unlink("../b.txt"));
  MUST(fchdir(top));
  say_and_close(MUST(open("made_on_top.txt", O_WRONLY | O_CREAT, 0644)), "z");
  return 0;
}
