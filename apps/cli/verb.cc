#include "cli/verb.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/terminal.h"

namespace assay::cli {
namespace {

int first_stdout_error = 0;

}  // namespace

void write_stdout(std::string_view text) {
  const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!whole && first_stdout_error == 0) first_stdout_error = errno;
}

int finish_stdout() {
  if (std::fflush(stdout) != 0 && first_stdout_error == 0) first_stdout_error = errno;
  if (std::ferror(stdout) != 0 && first_stdout_error == 0) first_stdout_error = EIO;
  return first_stdout_error;
}

std::vector<std::string> Option::names() const {
  const std::size_t comma = name.find(',');
  if (comma == std::string::npos) return {name};
  return {name.substr(0, comma), name.substr(comma + 1)};
}

void Session::print(std::string_view text) const {
  if (!json && !quiet) write_stdout(text);
}

void Session::print(const base::Table& table) const {
  print(table.text(base::terminal_columns(STDOUT_FILENO)));
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
