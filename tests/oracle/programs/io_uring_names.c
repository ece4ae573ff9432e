/* Every operation of io_uring that takes a path, in a ring with an array of indices or, with
 * "noarray", without; with "registered", in a ring that is named by its number in the thread's
 * table; with "closed", its descriptor is closed and that of another ring is open. */
#include "ring.h"

#include <linux/openat2.h>
static struct io_uring_sqe opening(const char* path) {
  return (struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
                               .fd = AT_FDCWD,
                               .addr = (unsigned long)path,
                               .open_flags = O_RDONLY};
}
static int two_names(int operation, const char* from, const char* to) {
  return submit((struct io_uring_sqe){.opcode = (__u8)operation,
                                      .fd = AT_FDCWD,
                                      .addr = (unsigned long)from,
                                      .len = (unsigned)AT_FDCWD,
                                      .off = (unsigned long)to});
}
int main(int argc, char** argv) {
  begin(argc > 1 && strcmp(argv[1], "noarray") == 0 ? NO_SQARRAY : 0);
  const int closed = argc > 1 && strcmp(argv[1], "closed") == 0;
  if (closed || (argc > 1 && strcmp(argv[1], "registered") == 0)) enter_by_number(!closed);
  if (closed) {
    struct io_uring_params idle = {0};
    MUST(syscall(SYS_io_uring_setup, 4, &idle));
  }
  int data = ring_open("data", O_RDONLY | O_DIRECTORY);
  struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
  submit((struct io_uring_sqe){.opcode = IORING_OP_OPENAT2,
                               .fd = data,
                               .addr = (unsigned long)"a.txt",
                               .len = sizeof how,
                               .off = (unsigned long)&how});
  put(opening("one"));
  put(opening("two"));
  hand_over(2);
  say_and_close(ring_open("old.txt", O_WRONLY | O_TRUNC), "new");
  say_and_close(ring_open("made.txt", O_WRONLY | O_CREAT | O_EXCL), "made");
  two_names(IORING_OP_RENAMEAT, "made.txt", "renamed.txt");
  two_names(IORING_OP_LINKAT, "in.txt", "linked.txt");
  submit((struct io_uring_sqe){
      .opcode = IORING_OP_UNLINKAT, .fd = data, .addr = (unsigned long)"b.txt"});
  struct statx found;
  submit((struct io_uring_sqe){.opcode = IORING_OP_STATX,
                               .fd = AT_FDCWD,
                               .addr = (unsigned long)"in.txt",
                               .len = STATX_SIZE,
                               .off = (unsigned long)&found});
  return 0;
}
