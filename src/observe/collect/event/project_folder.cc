#include "observe/collect/event/project_folder.h"

#include <utility>

#include "observe/wire/system_folders.h"

namespace assay::collect {
namespace {

std::string& folder_of_process() {
  static std::string folder;
  return folder;
}

}  // namespace

void set_project_folder(std::string folder) {
  while (folder.ends_with('/')) folder.pop_back();
  folder_of_process() = std::move(folder);
}

const std::string& project_folder() {
  return folder_of_process();
}

bool is_unreported(const std::string& path) {
  const std::string& project = project_folder();
  return wire::is_system_path(path.c_str()) &&
         !wire::is_below(path.c_str(), project.c_str(), project.size());
}

}  // namespace assay::collect
