#include "compare/command.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace assay::compare {
namespace {

bool is_program(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path);
}

}  // namespace

std::string program_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (is_program(candidate)) return candidate;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return {};
}

std::optional<std::vector<std::string>> plain_arguments(const std::string& command) {
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
  // "A=1 command" sets a variable; builtins (cd, exit) and misspelt names are left to the shell.
  if (words.empty() || words.front().find('=') != std::string::npos ||
      program_path(words.front()).empty()) {
    return std::nullopt;
  }
  return words;
}

std::vector<std::string> shell_arguments(const std::string& command) {
  return {"/bin/sh", "-c", command};
}

}  // namespace assay::compare
