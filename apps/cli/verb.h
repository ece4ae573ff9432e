// What a verb is: data that says its name, arguments, examples and action. command_line.cc parses
// with it, completion.cc completes with it, and the help is made from it, so the three agree.
//
// A verb lives in its own file and exports one function that describes it. To parse, to call a room
// of src/ and to print is all it does. The programs that have verbs share this folder.
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

// How verbs speak: facts to standard output, as text or as JSON.
class Session {
 public:
  bool json = false;
  bool quiet = false;

  // Facts for people: a table or a sentence. Nothing under --quiet or --json.
  void print(std::string_view text) const;
  void print(const base::Table& table) const;
  // The same facts for programs. Nothing without --json.
  void print_json(const base::Json& document) const;
  // One of several documents, on a line of its own, at once: for verbs that go on for a while.
  void print_json_line(const base::Json& document) const;
  // "next: assay …", the command a person most likely wants after this one.
  void next(std::string_view command) const;
};

// Words that completion offers. A function, because only completion asks and every start would pay.
using Words = std::function<std::vector<std::string>()>;

struct Argument {
  std::string name;  // "FILE"
  std::string help;
  std::string* value = nullptr;
  bool required = false;
  Words words = {};
  bool files = false;                          // completion offers files as well
  std::vector<std::string>* values = nullptr;  // in place of `value`: any number of them
};

// What an option sets tells its kind: a flag (--all), one value of which the last counts
// (--format svg), values that add up (--set a=1 --set b=2), or values that add up with those of
// other options, in the order in which they stand on the command line (--keep a --leave-out b).
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
  Words words = {};
  std::string placeholder = "KEY=VALUE";  // what the help shows for the value
  bool files = false;

  // {"-n", "--limit"}
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool is_flag() const { return std::holds_alternative<bool*>(target); }
};

// Words that belong to another command: all that follow "--", or from the first word on that is no
// option, taken as they are. A word that starts with "@" and is not behind "--" stands for a
// command and goes to `step`; options may follow it.
struct Rest {
  std::string name;  // "COMMAND"; empty: the verb takes none
  std::string help;
  std::vector<std::string>* words = nullptr;
  std::string* step = nullptr;
};

inline constexpr std::array kCommonFlags = {"--json", "--quiet", "--help"};

// Every verb has the common flags besides what it lists.
struct Verb {
  std::string name;
  std::string description;
  std::vector<std::string> examples;  // work as they stand; tests run them
  std::vector<Argument> arguments = {};
  std::vector<Option> options = {};
  std::vector<Verb> verbs = {};
  Rest rest = {};
  std::function<base::Result<base::ExitCode>()> action = {};
};

}  // namespace assay::cli
