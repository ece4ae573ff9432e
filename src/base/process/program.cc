#include "base/process/program.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/process/environment.h"

namespace assay::base {
namespace {

namespace fs = std::filesystem;

bool is_usable_file(const fs::path& path, FileUse use) {
  std::error_code ignored;
  return ::access(path.c_str(), use == FileUse::kExecute ? X_OK : R_OK) == 0 &&
         !fs::is_directory(path, ignored);
}

bool is_executable_file(const fs::path& path) {
  return is_usable_file(path, FileUse::kExecute);
}

// Found also after the program's file was replaced or removed.
constexpr const char* kOwnProgram = "/proc/self/exe";

}  // namespace

fs::path own_program() {
  std::error_code error;
  fs::path program = fs::read_symlink(kOwnProgram, error);
  return error ? fs::path() : program;
}

std::optional<fs::path> beside_own_program(std::string_view name,
                                           std::initializer_list<std::string_view> folders,
                                           FileUse use) {
  const fs::path own = own_program().parent_path();
  if (own.empty()) return std::nullopt;
  for (const std::string_view folder : folders) {
    fs::path candidate = folder.empty() ? own / name : own / folder / name;
    if (is_usable_file(candidate, use)) return candidate.lexically_normal();
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

Error restart_program(char* const* arguments) {
  ::execv(kOwnProgram, arguments);
  return system_error(kOwnProgram, "cannot be started", errno);
}

}  // namespace assay::base
