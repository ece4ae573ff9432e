// The entry points that only count: add to this thread's block, jump to the driver. In assembly,
// because the number of instructions matters (six for a launch), and because a jump keeps every
// argument in place, whatever the function's signature.
//
// The label `cold` is for a thread without a block, or a function whose real address is not known
// yet.
#include "observe/shim/gpu/region/region.h"

// Offset of a quantity in a block. Top-level assembly takes no operands, so these are numbers,
// checked below.
#define ASSAY_AT_Kernel 64
#define ASSAY_AT_KernelEx 80
#define ASSAY_AT_Cooperative 96
#define ASSAY_AT_CopyToDevice 160
#define ASSAY_AT_CopyToHost 176
#define ASSAY_AT_CopyOnDevice 192
#define ASSAY_AT_CopyToPeer 208
#define ASSAY_AT_CopyUnified 224
#define ASSAY_AT_CopyArray 240
#define ASSAY_AT_Set 256
#define ASSAY_AT_SyncContext 416
#define ASSAY_AT_SyncStream 432
#define ASSAY_AT_SyncEvent 448
#define ASSAY_AT_Context 464
#define ASSAY_AT_Module 480

#define STUB(symbol, name, version, per_thread, quantity, bytes, scale) \
  static_assert(ASSAY_AT_##quantity ==                                  \
                offsetof(assay::wire::GpuBlock, counts) +               \
                    sizeof(assay::wire::GpuCount) *                     \
                        static_cast<std::size_t>(assay::wire::GpuQuantity::k##quantity));
#define FUNCTION(symbol, name, version, per_thread)
#define NCCL(symbol)
#include "observe/shim/gpu/entries.inc"
#undef STUB

#define ASSAY_TEXT_OF(x) #x
#define ASSAY_TEXT(x) ASSAY_TEXT_OF(x)
#define ASSAY_BYTES_none(at, scale) ""
#define ASSAY_BYTES(reg, at, scale) \
  "leaq (,%" reg "," ASSAY_TEXT(scale) "), %r10\n addq %r10, 8+" ASSAY_TEXT(at) "(%rax)\n"
#define ASSAY_BYTES_rdx(at, scale) ASSAY_BYTES("rdx", at, scale)
#define ASSAY_BYTES_rcx(at, scale) ASSAY_BYTES("rcx", at, scale)
#define ASSAY_BYTES_r8(at, scale) ASSAY_BYTES("r8", at, scale)

#define STUB(symbol, name, version, per_thread, quantity, bytes, scale)           \
  asm(".text\n"                                                                   \
      ".p2align 4\n"                                                              \
      ".globl " #symbol                                                           \
      "\n"                                                                        \
      ".type " #symbol ", @function\n" #symbol                                    \
      ":\n"                                                                       \
      "0: .cfi_startproc\n"                                                       \
      "movq assay_gpu_block@gottpoff(%rip), %rax\n"                               \
      "movq %fs:(%rax), %rax\n"                                                   \
      "testq %rax, %rax\n"                                                        \
      "je 1f\n"                                                                   \
      "addq $1, " ASSAY_TEXT(ASSAY_AT_##quantity) "(%rax)\n" ASSAY_BYTES_##bytes( \
          ASSAY_AT_##quantity, scale) "jmpq *assay_gpu_real_" #symbol             \
                                      "(%rip)\n"                                  \
                                      "1: leaq 0b(%rip), %r10\n"                  \
                                      "jmp assay_gpu_cold\n"                      \
                                      "2: leaq assay_gpu_real_" #symbol           \
                                      "(%rip), %r11\n"                            \
                                      "xorl %r10d, %r10d\n"                       \
                                      "jmp assay_gpu_cold\n"                      \
                                      ".cfi_endproc\n"                            \
                                      ".size " #symbol ", .-" #symbol             \
                                      "\n"                                        \
                                      ".data\n"                                   \
                                      ".p2align 3\n"                              \
                                      ".globl assay_gpu_real_" #symbol            \
                                      "\n"                                        \
                                      ".hidden assay_gpu_real_" #symbol           \
                                      "\n"                                        \
                                      ".type assay_gpu_real_" #symbol             \
                                      ", @object\n"                               \
                                      ".size assay_gpu_real_" #symbol             \
                                      ", 8\n"                                     \
                                      "assay_gpu_real_" #symbol                   \
                                      ": .quad 2b\n"                              \
                                      ".text\n");
#include "observe/shim/gpu/entries.inc"
#undef STUB
#undef FUNCTION
#undef NCCL

// r10: where to continue, or 0 for what r11 points to, which may be a paced path that expects the
// block in rax. Without a driver the call returns CUDA_ERROR_NOT_INITIALIZED. None of the functions
// has arguments in vector registers.
asm(R"(
.text
.type assay_gpu_cold, @function
assay_gpu_cold:
  .cfi_startproc
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  pushq %r10
  pushq %r11
  subq $8, %rsp
  .cfi_adjust_cfa_offset 72
  call assay_gpu_enter
  addq $8, %rsp
  popq %r11
  popq %r10
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  .cfi_adjust_cfa_offset -72
  testl %eax, %eax
  je 3f
  testq %r10, %r10
  je 4f
  jmpq *%r10
4: movq assay_gpu_block@gottpoff(%rip), %rax
  movq %fs:(%rax), %rax
  jmpq *(%r11)
3: movl $3, %eax
  ret
  .cfi_endproc
.size assay_gpu_cold, .-assay_gpu_cold
)");

// The loader's functions identify their caller by the return address (RTLD_NEXT), so they are
// jumped to unless the name is one that is wrapped.
#define ASSAY_LOADER_FUNCTION(symbol)          \
  asm(".text\n"                                \
      ".globl " #symbol                        \
      "\n"                                     \
      ".type " #symbol ", @function\n" #symbol \
      ":\n"                                    \
      ".cfi_startproc\n"                       \
      "pushq %rdi\n"                           \
      "pushq %rsi\n"                           \
      "pushq %rdx\n"                           \
      ".cfi_adjust_cfa_offset 24\n"            \
      "call assay_gpu_is_ours\n"               \
      "popq %rdx\n"                            \
      "popq %rsi\n"                            \
      "popq %rdi\n"                            \
      ".cfi_adjust_cfa_offset -24\n"           \
      "testl %eax, %eax\n"                     \
      "jne assay_gpu_" #symbol                 \
      "\n"                                     \
      "jmpq *assay_gpu_next_" #symbol          \
      "(%rip)\n"                               \
      ".cfi_endproc\n"                         \
      ".size " #symbol ", .-" #symbol "\n");
ASSAY_LOADER_FUNCTION(dlsym)
ASSAY_LOADER_FUNCTION(dlvsym)
