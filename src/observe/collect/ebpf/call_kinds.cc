#include "observe/collect/ebpf/call_kinds.h"

#include <array>
#include <cstddef>

namespace assay::collect {
namespace {

struct CallKindRow {
  std::size_t x86_64;  // 0: no such call
  std::size_t i386;
  unsigned kind;
};

constexpr unsigned kOpensByName = kAssayOpens | kAssayQueries;

constexpr std::array kCallKindRows = std::to_array<CallKindRow>({
    {2, 5, kOpensByName},                          // open
    {257, 295, kOpensByName | kAssayPathSecond},   // openat
    {437, 437, kOpensByName | kAssayPathSecond},   // openat2
    {85, 8, kAssayOpens},                          // creat
    {304, 342, kAssayOpens | kAssayByHandle},      // open_by_handle_at
    {4, 106, kAssayQueries},                       // stat
    {6, 107, kAssayQueries},                       // lstat
    {0, 195, kAssayQueries},                       // stat64
    {0, 196, kAssayQueries},                       // lstat64
    {21, 33, kAssayQueries},                       // access
    {89, 85, kAssayQueries},                       // readlink
    {262, 300, kAssayQueries | kAssayPathSecond},  // newfstatat, fstatat64
    {332, 383, kAssayQueries | kAssayPathSecond},  // statx
    {269, 307, kAssayQueries | kAssayPathSecond},  // faccessat
    {439, 439, kAssayQueries | kAssayPathSecond},  // faccessat2
    {267, 305, kAssayQueries | kAssayPathSecond},  // readlinkat
    {425, 425, kAssayUring},                       // io_uring_setup
    {426, 426, kAssayUring},                       // io_uring_enter
});

}  // namespace

void set_call_kinds(assay_constants& constants) {
  for (const CallKindRow& row : kCallKindRows) {
    if (row.x86_64 != 0) constants.calls[0][row.x86_64] = static_cast<__u8>(row.kind);
    if (row.i386 != 0) constants.calls[1][row.i386] = static_cast<__u8>(row.kind);
  }
}

}  // namespace assay::collect
