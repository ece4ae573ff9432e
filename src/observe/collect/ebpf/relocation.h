// What is known of our programs' instructions only when they are loaded: where the fields that they
// read are in the running kernel ("compile once, run everywhere"), and the addresses of maps and
// functions. The compiler recorded for each instruction which field of which structure, or which
// symbol, it refers to.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "observe/collect/ebpf/kernel_types.h"
#include "observe/collect/ebpf/object_file.h"
#include "observe/collect/ebpf/type_table.h"

namespace assay::collect {

// The names of the kernel's types that `fields` refer to: what KernelTypes has to find.
std::vector<std::string> names_of_types(std::span<const bpf_core_relo> fields,
                                        const TypeTable& ours);

// Writes the offsets into `code`, whose instructions begin at offset 0 of the fields' section. An
// access to a field that the kernel does not have becomes an instruction that the verifier rejects
// if it is reachable.
base::Result<void> fill_in_fields(std::span<const bpf_core_relo> fields, const TypeTable& ours,
                                  const KernelTypes& kernel, std::span<bpf_insn> code);

using BpfMaps = std::map<std::string, base::UniqueFd, std::less<>>;  // by name

// `code` has the section from `begin` on, and the shared functions from `shared_begin` on. A call
// of a function that the kernel does not have becomes such an instruction, too.
void fill_in_addresses(const CodeSection& section, std::size_t begin, std::size_t shared_begin,
                       const BpfMaps& maps, const KernelTypes& kernel, std::span<bpf_insn> code);

}  // namespace assay::collect
