// The gate: a seccomp filter over the whole command that stops every path-class system call and
// asks the collector, except those made from one instruction. That instruction stands on a page of
// the shim's own, at this fixed address; the shim records an event for every call it makes there.
// So a call is either recorded by the shim or seen by the collector: there is no third way.
#pragma once

#include <cstdint>

namespace assay::wire {

// Far from where Linux puts programs, libraries, stacks and heaps on x86-64, and below the 47-bit
// limit. If something is mapped there, the shim does not map it and the gate sees everything.
inline constexpr std::uintptr_t kGatePage = 0x0000'2A55'A000'0000;
// The page begins with `syscall; ret`. seccomp reports the address after the instruction.
inline constexpr std::uintptr_t kGateReturn = kGatePage + 2;
inline constexpr unsigned char kGateCode[] = {0x0F, 0x05, 0xC3};

// Next to the instruction stands the address of the shim's state, a 32-bit word. When a process is
// about to forbid itself system calls (seccomp), the collector writes kStepAside there: from then
// on the shim makes exactly the calls that the program makes, and the gate sees them. A fork
// inherits it.
inline constexpr std::uintptr_t kGateStateAddress = kGatePage + 8;
inline constexpr std::uint32_t kStepAside = 3;

}  // namespace assay::wire
