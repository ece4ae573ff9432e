// The small files of /proc, whose text the kernel makes when it is read.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <span>
#include <string_view>

#include "base/unique_fd.h"

namespace assay::base {

// As much of it as fits into the buffer, in one read, so that it is of one moment; empty when there
// is no such file.
inline std::string_view read_proc_file(const char* path, std::span<char> buffer) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

}  // namespace assay::base
