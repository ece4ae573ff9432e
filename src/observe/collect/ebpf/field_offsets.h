// Where the fields that our programs read are in the running kernel ("compile once, run
// everywhere"): the compiler recorded for each instruction which field of which structure it
// accesses, and fill_in_fields() writes the running kernel's offsets into the instructions.
#pragma once

#include <linux/bpf.h>

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "observe/collect/ebpf/kernel_types.h"
#include "observe/collect/ebpf/type_table.h"

namespace assay::collect {

// The names of the kernel's types that `fields` refer to: what KernelTypes has to find.
std::vector<std::string> names_of_types(std::span<const bpf_core_relo> fields,
                                        const TypeTable& ours);

// Changes `code`, whose instructions begin at offset 0 of the fields' section. An access to a field
// that the kernel does not have becomes an instruction that the verifier rejects if it is
// reachable.
base::Result<void> fill_in_fields(std::span<const bpf_core_relo> fields, const TypeTable& ours,
                                  const KernelTypes& kernel, std::span<bpf_insn> code);

// The instruction that the verifier rejects, for fields and functions that the kernel does not
// have.
bpf_insn impossible_instruction();

}  // namespace assay::collect
