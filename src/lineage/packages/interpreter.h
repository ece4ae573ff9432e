// Which interpreters a run started. One name (`python3`, `.venv/bin/python`) can lead to different
// programs at different times, so an interpreter is identified by language, version and build, read
// from its file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

struct Interpreter {
  std::string started;   // the absolute path under which it was started
  std::string real;      // that path with links resolved
  std::string language;  // "python", "node", …
  std::string version;   // "3.11.2"; empty where it cannot be read from the file
  std::string build;     // the linker's build id, else the first digits of the file's BLAKE3
  std::int64_t changed_unix_ns = 0;  // the last change of its file
  std::int64_t used_ns = 0;          // start of the first process with it, since the run began
};

// "python" for "/usr/bin/python3.11"; nothing if it is not a known interpreter.
std::optional<std::string> language_of(std::string_view program);

// The interpreter at this path now, with links followed; nothing if there is none. Takes
// microseconds, or milliseconds if the version has to be searched for.
enum class WithVersion { kNo, kYes };
std::optional<Interpreter> interpreter_at(const std::string& started,
                                          WithVersion version = WithVersion::kYes);

// The interpreters of a run's processes, without duplicates; a script counts as the interpreter
// that its first line names. `search_path` (PATH) and `directory` are the run's.
std::vector<Interpreter> interpreters_of(const std::vector<store::ProcessRecord>& processes,
                                         const std::string& search_path,
                                         const std::string& directory);

// Conversion to a PathFact of a run, and back.
store::PathFact to_fact(const Interpreter& interpreter);
std::optional<Interpreter> interpreter_of(const store::PathFact& fact);

// "python 3.11.2, build 6f6b2c…, /usr/bin/python3.11"
std::string to_text(const Interpreter& interpreter);

}  // namespace assay::lineage
