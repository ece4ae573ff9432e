/* 1,500 distinct files created and read, one file read 5,000 times. */
#include "must.h"
int main(void) {
  MUST(mkdir("many", 0755));
  for (int i = 0; i < 1500; ++i) {
    char name[64];
    snprintf(name, sizeof name, "many/%d", i);
    say_and_close(MUST(open(name, O_WRONLY | O_CREAT, 0644)), name);
  }
  for (int i = 0; i < 1500; ++i) {
    char name[64];
    snprintf(name, sizeof name, "many/%d", i);
    drain(MUST(open(name, O_RDONLY)));
  }
  for (int i = 0; i < 5000; ++i) MUST(close(MUST(open("in.txt", O_RDONLY))));
  return 0;
}
