// ObjectFile: our BPF programs as clang compiled them (files.bpf.o, in ELF), taken apart into what
// a loader needs: instructions, maps, and what has to be filled in when they are loaded. The file
// is compiled in, so it is checked (ASSAY_CHECK) and not mistrusted.
//
// Not libbpf: it looks through all types of the kernel once for every type of ours, three quarters
// of the time that a start took (bench/results/ebpf.md).
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "observe/collect/ebpf/type_table.h"

namespace assay::collect {

// The address of something that is known when the programs are loaded, in instruction `at`.
struct AddressToFill {
  enum class Of { kMap, kMapContent, kFunction, kCall, kKernelFunction };
  Of of = Of::kMap;
  std::uint32_t at = 0;
  std::string name;  // of the map or the kernel's function
  std::uint32_t offset =
      0;  // kMapContent: in bytes; kFunction, kCall: the instruction, in `shared`
};

struct CodeSection {
  std::vector<bpf_insn> instructions;
  std::vector<AddressToFill> addresses;
  std::vector<bpf_core_relo> fields;  // insn_off counts bytes within this section
};

struct BpfProgram : CodeSection {
  std::string name;     // of its function
  std::string section;  // "tp_btf/sys_exit": its kind and what it is attached to
  // Uses functions of the object's shared section.
  [[nodiscard]] bool uses_shared() const;
};

struct BpfMap {
  std::string name;
  std::uint32_t type = 0;
  std::uint32_t key_size = 0;
  std::uint32_t value_size = 0;
  std::uint32_t max_entries = 0;
  std::uint32_t flags = 0;
};

struct BpfFunction {
  std::string name;
  std::uint32_t at = 0;  // instruction, in `shared`
};

class ObjectFile {
 public:
  explicit ObjectFile(std::span<const std::byte> image);

  [[nodiscard]] const std::vector<BpfProgram>& programs() const { return programs_; }
  // Functions that programs call; appended to those that do.
  [[nodiscard]] const CodeSection& shared() const { return shared_; }
  [[nodiscard]] const std::vector<BpfFunction>& functions() const { return functions_; }
  [[nodiscard]] const std::vector<BpfMap>& maps() const { return maps_; }
  [[nodiscard]] const TypeTable& types() const { return types_; }

 private:
  class Reader;
  std::vector<BpfProgram> programs_;
  CodeSection shared_;
  std::vector<BpfFunction> functions_;
  std::vector<BpfMap> maps_;
  TypeTable types_;
};

}  // namespace assay::collect
