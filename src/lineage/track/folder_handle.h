// A folder in which several files are opened or looked at in turn. From the second file on they are
// reached through a descriptor of the folder, so that the kernel does not walk its path again.
// For a short time only: what the path leads to may change.
#pragma once

#include <fcntl.h>

#include <string>

#include "base/unique_fd.h"

namespace assay::lineage {

class FolderHandle {
 public:
  // For openat, fstatat and the like. Valid until the next call.
  struct At {
    int directory;
    const char* path;
  };
  // `folder` is absolute, and the same object for all its files.
  At at(const std::string& folder, const char* name) {
    if (&folder != folder_) {
      folder_ = &folder;
      opened_ = false;
      fd_.reset();
    } else if (!opened_) {
      opened_ = true;
      fd_.reset(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    if (fd_.valid()) return {fd_.get(), name};
    path_.assign(folder).append(1, '/').append(name);
    return {AT_FDCWD, path_.c_str()};
  }
  // Ends the short time.
  void close() {
    folder_ = nullptr;
    fd_.reset();
  }

 private:
  const std::string* folder_ = nullptr;
  bool opened_ = false;
  base::UniqueFd fd_;
  std::string path_;
};

}  // namespace assay::lineage
