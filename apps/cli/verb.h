// A verb is data: its name, arguments, options, examples and action. The parser (command_line.cc),
// help, man page and shell completion are all derived from it, so they cannot disagree.
//
// Each verb has its own folder and exports one function that returns its description. Its action
// calls a module of src/ and prints. Both programs (assay, assay-train) use this folder.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/result.h"
#include "base/table.h"

namespace assay::cli {

// How verbs print: results to standard output, as text or as JSON.
class Session {
 public:
  bool json = false;
  bool quiet = false;

  // Results for people: a table or a sentence. Prints nothing with --quiet or --json.
  void print(std::string_view text) const;
  void print(const base::Table& table) const;
  // The same results for programs. Prints nothing without --json.
  void print_json(const base::Json& document) const;
  // One of several documents, on its own line: for verbs that report while they work.
  void print_json_line(const base::Json& document) const;
  // "next: assay …": suggests the command that the user most likely needs next.
  void next(std::string_view command) const;
};

// A text, control characters made visible, for a table's cell: cut to so many columns on a terminal
// and whole in a pipe.
std::string cell_text(std::string_view text, std::size_t columns = 60);

// Writes text unchanged, regardless of options. Write errors (a full disk) are reported at the end.
void write_stdout(std::string_view text);
// Flushes; returns the errno of the first failed write, or 0.
int finish_stdout();
// For work that must not end when the reader of its output does (`| head`): from now on that is
// said once on standard error, as `line`, and what is printed after it is dropped. It is not an
// error.
void outlive_reader_of_stdout(std::string line);

// Candidates for shell completion. A function, because they are needed only for completion and may
// take time to collect.
using Candidates = std::function<std::vector<std::string>()>;

struct Argument {
  std::string name;  // "FILE"
  std::string help;
  std::string* value = nullptr;
  bool required = false;
  Candidates candidates = {};
  bool files = false;                          // completion offers files as well
  std::vector<std::string>* values = nullptr;  // instead of `value`: any number of them
};

// The type of an option's target determines its kind: a flag (--all), a value where the last one
// wins (--format svg), values that accumulate (--set a=1 --set b=2), or values that accumulate
// together with those of other options, in command-line order (--keep a --leave-out b).
struct OrderedValue {
  std::string option;  // "--keep"
  std::string value;
};
using OptionTarget =
    std::variant<std::vector<std::string>*, std::string*, bool*, std::vector<OrderedValue>*>;

struct Option {
  std::string name;  // "--set", or with a short form "-n,--limit"
  std::string help;
  OptionTarget target;
  Candidates candidates = {};
  std::string placeholder = "KEY=VALUE";  // what the help shows for the value
  bool files = false;
  // Its target is a list only to distinguish an empty value from none: the last one counts.
  bool once = false;

  // {"-n", "--limit"}
  [[nodiscard]] std::vector<std::string> names() const;
  // The help, which says whether it may be given several times and, before the command line is
  // parsed into the target, what its default is.
  [[nodiscard]] std::string help_text() const;
  [[nodiscard]] bool is_flag() const { return std::holds_alternative<bool*>(target); }
};

// The command line of another command: everything after "--", or from the first non-option argument
// on, unchanged. An argument that starts with "@" and does not follow "--" names a stage instead
// and goes to `stage`; options may follow it.
struct WrappedCommand {
  std::string name;  // "COMMAND"; empty: the verb takes none
  std::string help;
  std::vector<std::string>* arguments = nullptr;
  std::string* stage = nullptr;
};

inline constexpr std::array kCommonFlags = {"--json", "--quiet", "--help"};

// Every verb also has the common flags.
struct Verb {
  std::string name;
  std::string description;
  std::vector<std::string> examples;  // tests run them
  std::vector<Argument> arguments = {};
  std::vector<Option> options = {};
  std::vector<Verb> verbs = {};
  WrappedCommand wrapped = {};
  std::function<base::Result<base::ExitCode>()> action = {};
  std::string group = {};  // heading under which the parent's help lists it
};

}  // namespace assay::cli
