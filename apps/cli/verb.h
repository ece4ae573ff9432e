// A verb is data: its name, arguments, options, examples and action. command_line.cc parses with
// it, help, man page and shell completion are generated from it, so they cannot disagree.
//
// A verb lives in a folder of its own and exports one function that returns its description. It
// parses, calls a module of src/ and prints. Both programs (assay, assay-train) use this folder.
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

  // Results for people: a table or a sentence. Prints nothing under --quiet or --json.
  void print(std::string_view text) const;
  void print(const base::Table& table) const;
  // The same results for programs. Prints nothing without --json.
  void print_json(const base::Json& document) const;
  // One of several documents, on a line of its own: for verbs that report while they work.
  void print_json_line(const base::Json& document) const;
  // "next: assay …": the command that a person most likely wants after this one.
  void next(std::string_view command) const;
};

// Text as it is, whatever the options. Write errors (a full disk) are kept until the end.
void write_stdout(std::string_view text);
// Flushes; the errno of the first write that failed, or 0.
int finish_stdout();

// Candidates for shell completion. A function, because they are needed for completion only and may
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

// The type of an option's target decides its kind: a flag (--all), one value of which the last wins
// (--format svg), values that accumulate (--set a=1 --set b=2), or values that accumulate together
// with those of other options, in command-line order (--keep a --leave-out b).
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

  // {"-n", "--limit"}
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool is_flag() const { return std::holds_alternative<bool*>(target); }
};

// The command line of another command: everything after "--", or from the first argument on that is
// not an option, unchanged. An argument that starts with "@" and is not behind "--" names a stage
// instead and goes to `stage`; options may follow it.
struct WrappedCommand {
  std::string name;  // "COMMAND"; empty: the verb takes none
  std::string help;
  std::vector<std::string>* arguments = nullptr;
  std::string* stage = nullptr;
};

inline constexpr std::array kCommonFlags = {"--json", "--quiet", "--help"};

// Every verb has the common flags besides what it lists.
struct Verb {
  std::string name;
  std::string description;
  std::vector<std::string> examples;  // tests run them
  std::vector<Argument> arguments = {};
  std::vector<Option> options = {};
  std::vector<Verb> verbs = {};
  WrappedCommand wrapped = {};
  std::function<base::Result<base::ExitCode>()> action = {};
  std::string group = {};  // the heading under which the help of the parent lists it
};

}  // namespace assay::cli
