#include "base/process/program.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/process/environment.h"

namespace assay::base {
namespace {

namespace fs = std::filesystem;

bool is_executable_file(const fs::path& path) {
  std::error_code ignored;
  return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path, ignored);
}

}  // namespace

fs::path own_program() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program;
}

std::optional<fs::path> beside_own_program(std::string_view name,
                                           std::initializer_list<std::string_view> folders) {
  const fs::path own = own_program().parent_path();
  for (const std::string_view folder : folders) {
    fs::path candidate = folder.empty() ? own / name : own / folder / name;
    if (is_executable_file(candidate)) return candidate.lexically_normal();
  }
  return std::nullopt;
}

std::string current_search_path() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? std::string(kDefaultSearchPath) : path;
}

std::optional<std::string> find_program(const std::string& name, std::string_view search_path,
                                        const fs::path& directory) {
  if (name.find('/') != std::string::npos) {
    return is_executable_file(directory / name) ? std::optional(name) : std::nullopt;
  }
  if (name.empty()) return std::nullopt;
  while (true) {
    const std::string_view folder = search_path.substr(0, search_path.find(':'));
    const fs::path found = fs::path(folder.empty() ? "." : folder) / name;
    if (is_executable_file(directory / found)) return found.string();
    if (folder.size() == search_path.size()) return std::nullopt;
    search_path.remove_prefix(folder.size() + 1);
  }
}

Error replace_process(const std::vector<std::string>& arguments) {
  const std::vector<char*> pointers = null_terminated(arguments);
  ::execv(pointers.front(), pointers.data());
  return system_error(arguments.front(), "cannot be started", errno);
}

}  // namespace assay::base
