/* Opens, reads, creates, renames and removes by io_uring alone: no path-class system call is made.
 */
#include "ring.h"
/* With "sqpoll" the kernel takes the operations by itself. */
int main(int argc, char** argv) {
  begin(argc > 1 && strcmp(argv[1], "sqpoll") == 0 ? IORING_SETUP_SQPOLL : 0);
  char buffer[256];
  int in = ring_open("in.txt", O_RDONLY), out = ring_open("ring.txt", O_WRONLY | O_CREAT);
  int count = submit((struct io_uring_sqe){
      .opcode = IORING_OP_READ, .fd = in, .addr = (unsigned long)buffer, .len = sizeof buffer});
  submit((struct io_uring_sqe){
      .opcode = IORING_OP_WRITE, .fd = out, .addr = (unsigned long)buffer, .len = (unsigned)count});
  return 0;
}
