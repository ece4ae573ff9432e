// Which interpreters a run started: the programs that decide what its scripts mean. One name
// (`python3`, `.venv/bin/python`) can lead to different ones at different times, so an interpreter
// is known by what it is: language, version and build, read from its file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

struct Interpreter {
  std::string started;   // the name by which it was started, as a whole path
  std::string real;      // where that led
  std::string language;  // "python", "node", …
  std::string version;   // "3.11.2"; empty where it cannot be read from the file
  std::string build;     // the linker's build id, else the first digits of the file's BLAKE3
  std::int64_t changed_unix_ns = 0;  // the last change of its file
  std::int64_t used_ns = 0;          // since the run began: when the first process with it began
};

// "python" for "/usr/bin/python3.11"; nothing if it is no interpreter that is known here.
std::optional<std::string> language_of(std::string_view program);

// What is at this path now, links followed; nothing if that is no interpreter. Takes microseconds,
// or milliseconds where the version has to be found.
enum class WithVersion { kNo, kYes };
std::optional<Interpreter> interpreter_at(const std::string& started,
                                          WithVersion version = WithVersion::kYes);

// Of a run's processes, each once; scripts by the interpreter that their first line names. PATH and
// the directory are the run's.
std::vector<Interpreter> interpreters_of(const std::vector<store::Process>& processes,
                                         const std::string& search_path,
                                         const std::string& directory);

// As a fact of a run, and back.
store::PathFact to_fact(const Interpreter& interpreter);
std::optional<Interpreter> interpreter_of(const store::PathFact& fact);

// "python 3.11.2, build 6f6b2c…, /usr/bin/python3.11"
std::string to_text(const Interpreter& interpreter);

}  // namespace assay::lineage
