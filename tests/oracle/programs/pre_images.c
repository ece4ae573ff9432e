/* Files read and then changed: cut, overwritten in place, mapped, removed, renamed over, renamed
 * away. Their content as it was read is what lineage needs. */
#include "must.h"

#include <sys/mman.h>
int main(void) {
  char name[32];
  for (int i = 0; i < 7; ++i) {
    snprintf(name, sizeof name, "pre%d.txt", i);
    drain(MUST(open(name, O_RDONLY)));
  }
  say_and_close(MUST(open("pre0.txt", O_WRONLY | O_TRUNC)), "cut");
  say_and_close(MUST(open("pre1.txt", O_WRONLY)), "in place");
  int fd = MUST(open("pre2.txt", O_RDWR));
  char* at = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return 1;
  memcpy(at, "MAP", 3);
  MUST(unlink("pre3.txt"));
  say_and_close(MUST(creat("fresh.txt", 0644)), "fresh");
  MUST(rename("fresh.txt", "pre4.txt"));
  MUST(rename("pre5.txt", "away.txt"));
  MUST(truncate("pre6.txt", 1));
  return 0;
}
