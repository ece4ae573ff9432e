#include "cli/verb.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/terminal.h"
#include "base/text.h"

namespace assay::cli {
namespace {

int first_stdout_error = 0;
std::string reader_gone_line;  // empty: the process ends with its reader
bool reader_gone = false;

void note_stdout_error(int problem) {
  if (problem == EPIPE && !reader_gone_line.empty()) {
    if (!std::exchange(reader_gone, true)) base::write_stderr(reader_gone_line + "\n");
    return;
  }
  if (first_stdout_error == 0) first_stdout_error = problem;
}

}  // namespace

void write_stdout(std::string_view text) {
  if (reader_gone) return;
  errno = 0;
  const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  // A failed flush at the end of a line is no short count: glibc considers buffered text written.
  if (whole && std::ferror(stdout) == 0) return;
  note_stdout_error(errno != 0 ? errno : EIO);
}

int finish_stdout() {
  if (reader_gone) return 0;
  if (std::fflush(stdout) != 0) note_stdout_error(errno);
  if (std::ferror(stdout) != 0 && !reader_gone) note_stdout_error(EIO);
  return first_stdout_error;
}

void outlive_reader_of_stdout(std::string line) {
  reader_gone_line = std::move(line);
  ::signal(SIGPIPE, SIG_IGN);
}

std::vector<std::string> Option::names() const {
  const std::size_t comma = name.find(',');
  if (comma == std::string::npos) return {name};
  return {name.substr(0, comma), name.substr(comma + 1)};
}

std::string Option::help_text() const {
  const bool list = std::holds_alternative<std::vector<std::string>*>(target) ||
                    std::holds_alternative<std::vector<OrderedValue>*>(target);
  const bool says_it = help.find("repeatable") != std::string::npos;
  if (list && !once && !says_it) return help + "; repeatable";
  const auto* const* value = std::get_if<std::string*>(&target);
  const bool says_default = help.find("default") != std::string::npos;
  if (value != nullptr && !(*value)->empty() && !says_default)
    return help + "; default: " + **value;
  return help;
}

void Session::print(std::string_view text) const {
  if (!json && !quiet) write_stdout(text);
}

void Session::print(const base::Table& table) const {
  print(table.text(base::terminal_columns(STDOUT_FILENO)));
}

std::string cell_text(std::string_view text, std::size_t columns) {
  std::string whole = base::printable(text);
  return base::terminal_columns(STDOUT_FILENO) ? base::shortened(whole, columns) : whole;
}

void Session::print_json(const base::Json& document) const {
  if (json) write_stdout(base::json_text(document));
}

void Session::print_json_line(const base::Json& document) const {
  if (!json) return;
  write_stdout(base::json_line(document));
}

void Session::next(std::string_view command) const {
  print("\nnext: " + std::string(command) + "\n");
}

}  // namespace assay::cli
