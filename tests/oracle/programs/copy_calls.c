/* Content that never passes through the process: copy_file_range, sendfile, splice. */
#include "must.h"

#include <sys/sendfile.h>
int main(void) {
  int in = MUST(open("in.txt", O_RDONLY));
  int out = MUST(open("ranged.txt", O_WRONLY | O_CREAT, 0644));
  if (copy_file_range(in, NULL, out, NULL, 1000, 0) < 0 && errno != EXDEV && errno != EOPNOTSUPP)
    return 1;
  int a = MUST(open("data/a.txt", O_RDONLY));
  MUST(sendfile(MUST(open("sent.txt", O_WRONLY | O_CREAT, 0644)), a, NULL, 1000));
  int ends[2];
  MUST(pipe(ends));
  long count = MUST(splice(MUST(open("data/b.txt", O_RDONLY)), NULL, ends[1], NULL, 1000, 0));
  MUST(splice(ends[0], NULL, MUST(open("spliced.txt", O_WRONLY | O_CREAT, 0644)), NULL, count, 0));
  return 0;
}
