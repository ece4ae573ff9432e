#include "compare/command.h"

#include <cctype>
#include <string_view>

#include "base/process/program.h"

namespace assay::compare {

std::optional<std::vector<std::string>> plain_words(const std::string& command) {
  constexpr std::string_view kPlain = "_@%+=:,./-";
  std::vector<std::string> words;
  bool inside = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == ' ' || c == '\t') {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == '\'') {
      const std::size_t close = command.find('\'', i + 1);
      if (close == std::string::npos) return std::nullopt;
      words.back() += command.substr(i + 1, close - i - 1);
      i = close;
    } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               kPlain.find(c) != std::string_view::npos) {
      words.back() += c;
    } else {
      return std::nullopt;
    }
  }
  // "A=1 command" sets a variable; "cd", "exit" and what is misspelt are the shell's to tell.
  if (words.empty() || words.front().find('=') != std::string::npos ||
      !base::find_program(words.front(), base::current_search_path())) {
    return std::nullopt;
  }
  return words;
}

std::vector<std::string> shell_words(const std::string& command) {
  return {"/bin/sh", "-c", command};
}

}  // namespace assay::compare
