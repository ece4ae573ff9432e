/* Reads argv[1], writes argv[2]: the plainest program there is. */
#include "must.h"
int main(int argc, char** argv) {
  if (argc != 3) return 64;
  char buffer[4096];
  int in = MUST(open(argv[1], O_RDONLY)),
      out = MUST(open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644));
  long count;
  while ((count = MUST(read(in, buffer, sizeof buffer))) > 0) MUST(write(out, buffer, count));
  return 0;
}
