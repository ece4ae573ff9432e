// What the kernel reads besides a program's own file in order to run it: the interpreter that a
// script names in its first line, the loader that an ELF file names.
#pragma once

#include <string>

namespace assay::collect {

struct Interpreter {
  std::string path;  // as the file has it; empty: none, or the file cannot be read
  bool readable = false;
  bool last = true;  // the kernel looks no further: a loader needs no loader
};

Interpreter interpreter_of(const std::string& program);

}  // namespace assay::collect
