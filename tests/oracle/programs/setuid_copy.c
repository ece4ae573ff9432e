/* Run as set-user-id of somebody else: reads and writes with the other's rights. */
#include "must.h"
int main(void) {
  drain(MUST(open("in.txt", O_RDONLY)));
  say_and_close(MUST(open("open_to_all/made.txt", O_WRONLY | O_CREAT, 0644)), "made");
  return 0;
}
