// Reads what `strace -f -y -xx` wrote: system calls with their arguments, in the order in which
// they ended. With -xx all text is hexadecimal, so that no name can be mistaken for syntax.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::oracle {

struct Argument {
  std::string text;                   // as printed: "O_RDONLY|O_CREAT", "AT_FDCWD", "3"
  std::optional<std::string> quoted;  // the text between quotes, decoded
  std::optional<std::string> path;    // behind a descriptor (-y), decoded
  bool deleted = false;               // that path has been removed
};

struct Call {
  int thread = 0;
  std::string name;
  std::vector<Argument> arguments;
  Argument result;

  [[nodiscard]] bool failed() const { return result.text.empty() || result.text[0] == '-'; }
  [[nodiscard]] const Argument& argument(std::size_t number) const;
  // Whether `word` is one of the symbols of a flags argument, of any depth.
  [[nodiscard]] bool has_flag(std::size_t number, std::string_view word) const;
};

// Calls that did not return (exit, an exec that took over another thread's name) are left out.
std::vector<Call> read_strace(std::string_view log);

// The options with which strace must be called for the above, and for what the model wants to know.
std::vector<std::string> strace_words(const std::string& output);

}  // namespace assay::oracle
