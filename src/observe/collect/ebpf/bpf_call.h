// The bpf() system call, as far as the eBPF collector needs it. Errors are errno's.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "observe/collect/ebpf/object_file.h"

namespace assay::collect::bpf {

// `types` is what load_types() returned.
base::Result<base::UniqueFd> create_map(const BpfMap& map, int types);
base::Result<void> write_element(int map, const void* key, const void* value);
// The verifier treats the content as constants.
base::Result<void> freeze(int map);

// Type information for programs and maps: an integer of 4 bytes (id 1) and one of 8 (id 2), as the
// key and value of task storage; and functions without parameters, from id 4 on.
base::Result<base::UniqueFd> load_types(std::span<const std::string> functions);
constexpr std::uint32_t kFourBytes = 1;
constexpr std::uint32_t kEightBytes = 2;
constexpr std::uint32_t kFirstFunction = 4;

struct ProgramToLoad {
  std::string name;
  bpf_prog_type type = BPF_PROG_TYPE_TRACING;
  bpf_attach_type attach_type = BPF_TRACE_RAW_TP;
  std::uint32_t target = 0;  // BTF id of the function or tracepoint
  std::span<const bpf_insn> code;
  int types = -1;
  std::span<const bpf_func_info> functions;
};
// The error has the verifier's last line.
base::Result<base::UniqueFd> load_program(const ProgramToLoad& program);
// To the target it was loaded for, until the result is closed.
base::Result<base::UniqueFd> attach(int program);
base::Result<void> run_once(int program);
// Runs that the kernel skipped because one was running on that CPU.
std::uint64_t skipped_runs(int program);

}  // namespace assay::collect::bpf
