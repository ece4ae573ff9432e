// Where the fields that our programs read are in the running kernel ("compile once, run
// everywhere"): the compiler noted for each instruction which field of which structure it means,
// and fill_in_fields() puts the kernel's numbers into the instructions.
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

// Changes `code`, whose instructions begin at offset 0 of the fields' section. What the kernel does
// not have becomes an instruction that the verifier refuses if it can be reached.
base::Result<void> fill_in_fields(std::span<const bpf_core_relo> fields, const TypeTable& ours,
                                  const KernelTypes& kernel, std::span<bpf_insn> code);

// The instruction that cannot be loaded, for what the kernel does not have.
bpf_insn impossible_instruction();

}  // namespace assay::collect
