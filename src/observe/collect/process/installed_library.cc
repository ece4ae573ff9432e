#include "observe/collect/process/installed_library.h"

#include <fmt/format.h>

#include "base/process/program.h"

namespace assay::collect {
namespace {

std::filesystem::path library_beside_program(std::string_view name) {
  return base::beside_own_program(name, {"", "../lib/assay", ".."}, base::FileUse::kRead)
      .value_or(std::filesystem::path());
}

// LD_PRELOAD is a list without quoting.
bool can_be_preloaded(const std::filesystem::path& library) {
  return library.native().find_first_of(" :") == std::string::npos;
}

}  // namespace

std::filesystem::path installed_library(std::string_view name) {
  auto library = library_beside_program(name);
  return can_be_preloaded(library) ? library : std::filesystem::path();
}

std::string why_not_installed(std::string_view name) {
  const auto library = library_beside_program(name);
  if (library.empty()) return fmt::format("{} is not beside the program", name);
  return fmt::format("{} cannot be preloaded, because its path has a blank or a colon",
                     library.string());
}

}  // namespace assay::collect
