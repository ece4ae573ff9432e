#include "base/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <string>

namespace assay::base {

namespace fs = std::filesystem;

Result<fs::path> make_unique_folder(const fs::path& parent, std::string_view name) {
  std::string path = (parent / (std::string(name) + "XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr) {
    return fail(system_error(parent.string(), "cannot create a folder in it", errno));
  }
  return fs::path(path);
}

Result<fs::path> make_temporary_folder(std::string_view name) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) {
    return fail(system_error("the folder for temporary files", "cannot be used", error.value(),
                             "set TMPDIR to a folder that exists"));
  }
  return make_unique_folder(parent, name);
}

Result<ScratchFolder> ScratchFolder::make(std::string_view name) {
  ASSAY_TRY(fs::path path, make_temporary_folder(name));
  return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace assay::base
