#include "lineage/record/handed_down.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace assay::lineage {
namespace {

// Where shells keep what they will restore: from 10 on, close-on-exec. Bash has its script or
// terminal at 255.
constexpr int kFirstCopy = 10;
constexpr int kLastCopy = 63;

// Whether it is the same regular file. No, if the program is another user's, which cannot be
// inspected.
bool is_stream_of(pid_t program, int stream, int descriptor) {
  struct stat file {};
  struct stat its {};
  return ::fstat(descriptor, &file) == 0 &&
         ::stat(fmt::format("/proc/{}/fd/{}", program, stream).c_str(), &its) == 0 &&
         S_ISREG(its.st_mode) && its.st_dev == file.st_dev && its.st_ino == file.st_ino;
}

bool is_kept_for_writing(pid_t program, int number) {
  std::ifstream info(fmt::format("/proc/{}/fdinfo/{}", program, number));
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("flags:")) continue;
    const unsigned long flags = std::strtoul(line.c_str() + 6, nullptr, 8);
    return (flags & O_CLOEXEC) != 0 && (flags & O_ACCMODE) != O_RDONLY;
  }
  return false;
}

bool has_redirected_itself(pid_t program, int descriptor) {
  for (int number = kFirstCopy; number <= kLastCopy; ++number) {
    if (is_kept_for_writing(program, number) && !is_stream_of(program, number, descriptor)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool was_used(int descriptor) {
  return ::lseek(descriptor, 0, SEEK_CUR) > 0;
}

bool is_standard_error_of(pid_t program, int descriptor) {
  return is_stream_of(program, STDERR_FILENO, descriptor);
}

bool is_handed_down_by(pid_t program, int descriptor) {
  if (!is_stream_of(program, STDOUT_FILENO, descriptor) &&
      !is_standard_error_of(program, descriptor)) {
    return false;
  }
  return was_used(descriptor) || !has_redirected_itself(program, descriptor);
}

}  // namespace assay::lineage
