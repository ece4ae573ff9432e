/* Files that come and go: created, written, read, renamed, removed. */
#include "must.h"
int main(void) {
  say_and_close(MUST(creat("gone1.txt", 0644)), "1");
  drain(MUST(open("gone1.txt", O_RDONLY)));
  MUST(unlink("gone1.txt"));
  say_and_close(MUST(creat("gone2.txt", 0644)), "2");
  MUST(rename("gone2.txt", "gone3.txt"));
  MUST(unlink("gone3.txt"));
  MUST(mkdir("gone", 0755));
  say_and_close(MUST(creat("gone/4.txt", 0644)), "4");
  MUST(unlink("gone/4.txt"));
  MUST(rmdir("gone"));
  MUST(unlink("old.txt")); /* was there before, comes back as another file */
  say_and_close(MUST(creat("old.txt", 0644)), "another");
  MUST(rename("in.txt", "away.txt")); /* goes away and comes back as it was */
  MUST(rename("away.txt", "in.txt"));
  FILE* file = tmpfile();
  return file ? 0 : 1;
}
