#include "train/checkpoint/file_error.h"

#include <cerrno>

namespace assay::checkpoint {
namespace {

std::string_view hint_for(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
      return "the disk is full: free space, or keep fewer checkpoints";
    case EDQUOT:
      return "the disk quota is used up: free space, or keep fewer checkpoints";
    case EROFS:
    case EACCES:
    case EPERM:
      return "the checkpoints' folder must be writable";
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
      return "the checkpoints' folder has vanished; make it again or choose another";
    case EIO:
      return "the disk fails: choose another";
    case EFBIG:
      return "files may not be so large here: a smaller limit for shards helps";
    default:
      return "";
  }
}

}  // namespace

base::Error file_error(const std::string& where, std::string_view doing, int errno_value) {
  return base::system_error(where, doing, errno_value, std::string(hint_for(errno_value)));
}

}  // namespace assay::checkpoint
