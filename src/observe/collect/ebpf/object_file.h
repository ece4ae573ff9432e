// ObjectFile: our BPF programs as compiled by clang (files.bpf.o, in ELF), parsed into what a
// loader needs: instructions, maps, and relocations. The file is compiled into this program, so
// errors in it are bugs (ASSAY_CHECK), not bad input.
//
// libbpf is not used: it searches all of the kernel's types once for each of ours, which took three
// quarters of the start-up time (bench/results/ebpf.md).
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

// A relocation: instruction `at` needs an address that is known when the programs are loaded.
struct BpfRelocation {
  enum class Kind { kMap, kMapContent, kFunction, kCall, kKernelFunction };
  Kind kind = Kind::kMap;
  std::uint32_t at = 0;
  std::string name;  // of the map or the kernel's function
  std::uint32_t offset =
      0;  // kMapContent: in bytes; kFunction, kCall: the instruction, in `shared`
};

struct CodeSection {
  std::vector<bpf_insn> instructions;
  std::vector<BpfRelocation> addresses;
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
  // Functions that programs call; appended to each program that does.
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

// The file as it is compiled into this program (object_file_image.cc, by Bpf.cmake).
std::span<const std::byte> object_file_image();

}  // namespace assay::collect
