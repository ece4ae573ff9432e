// The gate: a seccomp filter over the whole command that stops every path-class system call for the
// collector, except calls from one instruction. That instruction is on a page of the shim's, at
// this fixed address; the shim records an event for every call it makes there. So every call is
// either recorded by the shim or seen by the collector.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::wire {

// Far from where Linux puts programs, libraries, stacks and heaps on x86-64, and below the 47-bit
// limit. If something else is mapped there, the shim stays off and the gate sees everything.
inline constexpr std::uintptr_t kGatePage = 0x0000'2A55'A000'0000;
// The page begins with `syscall; ret`. seccomp reports the address after the instruction.
inline constexpr std::uintptr_t kGateReturn = kGatePage + 2;
inline constexpr unsigned char kGateCode[] = {0x0F, 0x05, 0xC3};

// After the instruction follows the address of the shim's state, a 32-bit word. When a process is
// about to restrict its own system calls (seccomp), the collector writes kShimDisabled there: from
// then on the shim makes exactly the program's calls, and the gate sees them. A fork inherits it.
inline constexpr std::uintptr_t kGateStateAddress = kGatePage + 8;
inline constexpr std::uint32_t kShimDisabled = 3;

// The numbers of the calls that the filter stops, whatever their arguments: a filter that stops all
// of them stops whatever the gate does. In the log's header, for a shim that has to install one
// (shim/own_guard.h).
inline constexpr std::size_t kMostStoppedNumbers = 256;
struct StoppedNumbers {
  std::uint32_t native = 0;  // how many are of x86-64 and x32; those of i386 follow
  std::uint32_t all = 0;     // 0: unknown
  std::uint32_t numbers[kMostStoppedNumbers] = {};
};

}  // namespace assay::wire
