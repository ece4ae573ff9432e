// The compiled BPF programs, embedded in this program.
#include "observe/collect/ebpf/object_file.h"
// A comment with the sum of the file below: ccache knows what is included, not what is assembled
// in.
#include ASSAY_BPF_SUM

// ASSAY_BPF_OBJECT is the compiled file's path.
__asm__(
    ".section .rodata\n"
    ".balign 8\n"
    "assay_bpf_begin:\n"
    ".incbin \"" ASSAY_BPF_OBJECT
    "\"\n"
    "assay_bpf_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const std::byte assay_bpf_begin;  // NOLINT: names of the assembler
extern const std::byte assay_bpf_end;    // NOLINT
}

namespace assay::collect {

std::span<const std::byte> object_file_image() {
  return {&assay_bpf_begin, &assay_bpf_end};
}

}  // namespace assay::collect
