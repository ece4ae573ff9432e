// The two instructions from which the shim makes system calls: the gate's, which the seccomp filter
// lets pass, and an ordinary one, where path-class calls are stopped for the collector. Both return
// what the kernel returns: a value, or a negative error number. errno is not changed.
#pragma once

#include <errno.h>

#include "observe/shim/own_guard.h"
#include "observe/shim/shim.h"
#include "observe/wire/gate.h"

namespace assay::shim {

template <typename T>
inline long word(T value) {
  if constexpr (__is_class(T) || __is_union(T)) {
    static_assert(sizeof(T) == 0, "system calls take words");
  }
  return (long)value;  // a pointer or a number: the kernel gets a register
}

#ifdef __clang_analyzer__
// Not defined. Without it, clang-tidy takes what the kernel writes for uninitialized.
void written_by_kernel(void* memory);

template <typename T>
requires(!__is_const(T)) inline long word(T* memory) {
  written_by_kernel((void*)memory);
  return (long)memory;
}
#endif

// The page must be mapped. The call pushes a return address below the stack pointer, which is why
// the library is compiled without a red zone.
template <typename A = long, typename B = long, typename C = long, typename D = long>
inline long gate_call(long number, A a = 0, B b = 0, C c = 0, D d = 0, long e = 0, long f = 0) {
  long result;
  register long r10 asm("r10") = word(d);
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("call *%[gate]"
               : "=a"(result)
               : "a"(number), "D"(word(a)), "S"(word(b)), "d"(word(c)), "r"(r10), "r"(r8),
                 "r"(r9), [gate] "r"(wire::kGatePage)
               : "rcx", "r11", "memory", "cc");
  return result;
}

template <typename A = long, typename B = long, typename C = long, typename D = long>
inline long ordinary_call(long number, A a = 0, B b = 0, C c = 0, D d = 0, long e = 0, long f = 0) {
  long result;
  register long r10 asm("r10") = word(d);
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(word(a)), "S"(word(b)), "d"(word(c)), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory", "cc");
  return result;
}

inline bool failed(long result) {
  return static_cast<unsigned long>(result) >= -4095UL;
}

// Makes a call that the collector handles. Two results come from the collector's absence and are
// not the call's own:
// - EINTR: a signal handler ran before the collector had received the call.
// - ENOSYS: nobody answers any more. The program must continue all the same: behind a guard of its
//   own, for what it does without the shim, or else from the gate's instruction. The log counts the
//   missing event.
inline long stopped_call(long number, long a, long b = 0, long c = 0, long d = 0, long e = 0) {
  long result = 0;
  do {
    result = ordinary_call(number, a, b, c, d, e);
  } while (result == -EINTR && on());
  if (__builtin_expect(result == -ENOSYS, 0) && on()) {
    start_own_guard();
    result = gate_call(number, a, b, c, d, e);
    if (!failed(result)) shim.header->dropped.fetch_add(1, std::memory_order_relaxed);
  }
  return result;
}

}  // namespace assay::shim
