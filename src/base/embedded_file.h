// A file compiled into the program by embed_files() of cmake/EmbedFiles.cmake.
#pragma once

#include <span>
#include <string_view>

namespace assay::base {

struct EmbeddedFile {
  std::string_view path;  // relative to the embedded root, e.g. "models/tiny.toml"
  std::string_view contents;
};

}  // namespace assay::base
