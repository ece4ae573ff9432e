#include "observe/collect/ptrace/trace_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>

#include <cstddef>
#include <cstdint>

#include "observe/collect/call/call_table.h"
#include "observe/collect/gate/filter.h"

namespace assay::collect {
namespace {

using Filter = std::vector<sock_filter>;

constexpr std::uint32_t reason(TraceReason why) {
  return SECCOMP_RET_TRACE | static_cast<std::uint32_t>(why);
}

void load(Filter& filter, std::size_t offset) {
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
}
void jump(Filter& filter, unsigned test, std::uint32_t value, std::uint8_t yes, std::uint8_t no) {
  filter.push_back(BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), value, yes, no));
}
void stop_clone(Filter& filter) {
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, reason(TraceReason::kClone)));
}

// clone has its flags in the first argument, clone3 in memory, which only the tracer can read.
Filter clone_calls(std::uint32_t clone) {
  Filter filter;
  load(filter, offsetof(seccomp_data, nr));
  filter.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~std::uint32_t{kX32Bit}));
  jump(filter, BPF_JEQ, kClone3, 0, 1);
  stop_clone(filter);
  jump(filter, BPF_JEQ, clone, 0, 3);
  load(filter, offsetof(seccomp_data, args));
  jump(filter, BPF_JSET, CLONE_UNTRACED, 0, 1);
  stop_clone(filter);
  return filter;
}

}  // namespace

std::vector<sock_filter> trace_filter() {
  Filter filter;
  for (const auto& [arch, clone] :
       {std::pair<std::uint32_t, std::uint32_t>{AUDIT_ARCH_X86_64, 56}, {AUDIT_ARCH_I386, 120}}) {
    const Filter calls = clone_calls(clone);
    load(filter, offsetof(seccomp_data, arch));
    jump(filter, BPF_JEQ, arch, 0, static_cast<std::uint8_t>(calls.size()));
    filter.insert(filter.end(), calls.begin(), calls.end());
  }
  const Filter paths = gate_filter(GateMode::kEverything, reason(TraceReason::kPath));
  filter.insert(filter.end(), paths.begin(), paths.end());
  return filter;
}

}  // namespace assay::collect
