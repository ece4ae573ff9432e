// Files that the kernel reads besides a program's own to run it: the interpreter in a script's
// first line, the loader that an ELF file names.
#pragma once

#include <string>

namespace assay::collect {

enum class ProgramKind { kUnreadable, kUnknown, kScript, kElf };

struct ProgramInterpreter {
  ProgramKind kind = ProgramKind::kUnreadable;
  std::string path;  // as the file has it; empty: it names none

  // Nothing further is read: a loader needs no loader.
  bool last() const { return kind != ProgramKind::kScript; }
};

// `program` may be a name in /proc/self/fd.
ProgramInterpreter interpreter_of(const std::string& program);

}  // namespace assay::collect
