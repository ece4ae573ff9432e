/* Old files removed, by unlink, unlinkat, remove. */
#include "must.h"
int main(void) {
  MUST(unlink("in.txt"));
  MUST(unlinkat(MUST(open("data", O_RDONLY | O_DIRECTORY)), "a.txt", 0));
  MUST(remove("data/b.txt"));
  return 0;
}
