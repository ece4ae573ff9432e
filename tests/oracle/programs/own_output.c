/* Files that the command made itself are not inputs, whichever process reads them, under any name. */
#include "must.h"
int main(void) {
  say_and_close(MUST(creat("made.txt", 0644)), "made");
  drain(MUST(open("made.txt", O_RDONLY)));
  MUST(rename("made.txt", "moved.txt"));
  drain(MUST(open("moved.txt", O_RDONLY)));
  say_and_close(MUST(open("old.txt", O_WRONLY | O_TRUNC)), "new content");
  if (MUST(fork()) == 0) {
    drain(MUST(open("old.txt", O_RDONLY)));
    drain(MUST(open("moved.txt", O_RDWR)));
    _exit(0);
  }
  int status;
  MUST(wait(&status));
  return status != 0;
}
