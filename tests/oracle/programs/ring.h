/* An io_uring without a library. */
#pragma once
#include "must.h"

#include <linux/io_uring.h>
#include <sys/mman.h>
#define NO_SQARRAY (1U << 16) /* newer than the headers */
static int ring;
static unsigned enter_flags = IORING_ENTER_GETEVENTS;
static struct io_uring_params params;
static unsigned *sq_tail, *sq_mask, *sq_array, *sq_flags, *cq_head, *cq_tail, *cq_mask;
static struct io_uring_sqe* sqes;
static struct io_uring_cqe* cqes;
static char* mapped(unsigned long size, long offset) {
  char* at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, offset);
  if (at == MAP_FAILED) exit(1);
  return at;
}
/* With these flags of io_uring_setup. */
static void begin(unsigned flags) {
  params.flags = flags;
  ring = (int)syscall(SYS_io_uring_setup, 4, &params);
  if (ring < 0) NOT_HERE("no io_uring");
  char* sq = mapped(params.sq_off.array + params.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
  char* cq = mapped(params.cq_off.cqes + params.cq_entries * sizeof *cqes, IORING_OFF_CQ_RING);
  sqes = (void*)mapped(params.sq_entries * sizeof *sqes, (long)IORING_OFF_SQES);
  sq_tail = (void*)(sq + params.sq_off.tail), sq_mask = (void*)(sq + params.sq_off.ring_mask);
  sq_array = (flags & NO_SQARRAY) != 0 ? NULL : (void*)(sq + params.sq_off.array);
  sq_flags = (void*)(sq + params.sq_off.flags);
  cq_head = (void*)(cq + params.cq_off.head), cq_tail = (void*)(cq + params.cq_off.tail);
  cq_mask = (void*)(cq + params.cq_off.ring_mask), cqes = (void*)(cq + params.cq_off.cqes);
}
/* The ring is a number in the thread's table from now on; its descriptor stays open or is closed.
 */
static inline void enter_by_number(int keep_descriptor) {
  struct io_uring_rsrc_update table = {.offset = -1U, .data = (unsigned long)ring};
  int descriptor = ring;
  if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_RING_FDS, &table, 1) != 1)
    NOT_HERE("no registered rings");
  ring = (int)table.offset;
  enter_flags |= IORING_ENTER_REGISTERED_RING;
  if (!keep_descriptor) close(descriptor);
}
static void put(struct io_uring_sqe sqe) {
  unsigned slot = *sq_tail & *sq_mask;
  sqes[slot] = sqe;
  if (sq_array != NULL) sq_array[slot] = slot;
  __atomic_store_n(sq_tail, *sq_tail + 1, __ATOMIC_RELEASE);
}
/* Hands over what was put, and waits for all results; the last one's. */
static int hand_over(unsigned count) {
  int result = 0;
  if ((params.flags & IORING_SETUP_SQPOLL) != 0) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if ((__atomic_load_n(sq_flags, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP) != 0)
      MUST(syscall(SYS_io_uring_enter, ring, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0));
    MUST(syscall(SYS_io_uring_enter, ring, 0, count, IORING_ENTER_GETEVENTS, NULL, 0));
  } else {
    MUST(syscall(SYS_io_uring_enter, ring, count, count, enter_flags, NULL, 0));
  }
  for (; count > 0; --count) {
    result = cqes[*cq_head & *cq_mask].res;
    __atomic_store_n(cq_head, *cq_head + 1, __ATOMIC_RELEASE);
    if (result < 0) {
      fprintf(stderr, "io_uring operation: %s\n", strerror(-result));
      exit(1);
    }
  }
  return result;
}
static inline int submit(struct io_uring_sqe sqe) {
  put(sqe);
  return hand_over(1);
}
static inline int ring_open(const char* path, int flags) {
  return submit((struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
                                      .fd = AT_FDCWD,
                                      .addr = (unsigned long)path,
                                      .len = 0644,
                                      .open_flags = (unsigned)flags});
}
