// vfork: the one way in which two processes share a thread's memory while both call the shim. Once
// vfork has been called, a thread asks the kernel for its id at every event (event.cc).
#include <dlfcn.h>

#include "observe/shim/shim.h"

extern "C" {

// Remembers that vfork was called, and returns the C library's vfork.
[[gnu::used]] void* assay_shim_before_vfork() {
  assay::shim::shim.vforks.store(true, std::memory_order_relaxed);
  return dlsym(RTLD_NEXT, "vfork");
}

ASSAY_EXPORTED int vfork();
}

// vfork returns twice into the same stack frame, so no frame of the shim may lie in between: it is
// jumped to, with the stack as the program left it.
asm(R"(
  .text
  .globl vfork
  .type vfork, @function
vfork:
  .cfi_startproc
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call assay_shim_before_vfork
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size vfork, . - vfork
)");
