// Whether the eBPF collector can work here, and how: what `assay tracers` shows, and which programs
// are loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "observe/collect/ebpf/kernel_types.h"
#include "observe/collect/process/collector.h"

namespace assay::collect {

// Where opens are observed.
enum class EbpfMode {
  kVfs,      // in the kernel's open function, whichever system call led there
  kSyscall,  // at the exit of system calls: for kernels that cannot attach to functions
};

struct EbpfSupport {
  EbpfMode mode = EbpfMode::kVfs;
  bool follows_uring = false;  // kVfs always does
};

// What works, determined by attaching a program that does nothing. Only what decides the mode is
// tested; other problems are noticed when the programs are loaded. `types` must have been read with
// symbols_that_decide().
EbpfSupport ebpf_support(const KernelTypes& types);
// Symbols of the kernel whose existence decides how programs are loaded.
std::vector<std::string> symbols_that_decide();
// The function that tells the verifier a pointer's type.
inline constexpr const char* kCastFunction = "bpf_rdonly_cast";
// io_uring's tracepoint for a request that begins, if it has the form that on_uring_submit knows.
// 0 before Linux 6.1, and where io_uring is configured out.
std::uint32_t uring_submission(const KernelTypes& types);

Preflight ebpf_preflight();

// What prevents it from working, as far as can be determined without loading a program: for a
// collector that is about to load one. Empty: nothing.
std::string ebpf_obstacle();

}  // namespace assay::collect
