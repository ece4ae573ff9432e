#include "comm/cuda/nccl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.h"

namespace assay::comm {
namespace {

// The oldest version with non-blocking communicators that can be split, in the same order on all
// ranks.
constexpr int kOldest = NCCL_VERSION(2, 18, 1);

base::Error not_usable(std::string what) {
  return base::unfit_error(
      "libnccl.so.2", std::move(what),
      "training on several GPUs needs NCCL for CUDA 13 (Python's package is nvidia-nccl-cu13), in "
      "the loader's path or in LD_LIBRARY_PATH");
}

base::Result<NcclLibrary> loaded() {
  // Never closed: it runs threads.
  void* const library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return base::fail(not_usable(::dlerror()));
  NcclLibrary nccl;
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        reinterpret_cast<std::uintptr_t>(::dlsym(library, name)));
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(nccl.get_version, "ncclGetVersion");
  find(nccl.get_unique_id, "ncclGetUniqueId");
  find(nccl.init_rank, "ncclCommInitRankConfig");
  find(nccl.split, "ncclCommSplit");
  find(nccl.finalize, "ncclCommFinalize");
  find(nccl.destroy, "ncclCommDestroy");
  find(nccl.abort, "ncclCommAbort");
  find(nccl.async_error, "ncclCommGetAsyncError");
  find(nccl.count, "ncclCommCount");
  find(nccl.user_rank, "ncclCommUserRank");
  find(nccl.error_text, "ncclGetErrorString");
  find(nccl.last_error, "ncclGetLastError");
  find(nccl.group_start, "ncclGroupStart");
  find(nccl.group_end, "ncclGroupEnd");
  find(nccl.all_gather, "ncclAllGather");
  find(nccl.broadcast, "ncclBroadcast");
  find(nccl.send, "ncclSend");
  find(nccl.receive, "ncclRecv");
  if (!missing.empty()) return base::fail(not_usable("has no " + missing));
  int version = 0;
  if (nccl.get_version(&version) != ncclSuccess || version < kOldest) {
    return base::fail(not_usable(fmt::format("is version {}, older than {}", version, kOldest)));
  }
  return nccl;
}

}  // namespace

base::Result<const NcclLibrary*> NcclLibrary::find() {
  static const base::Result<NcclLibrary> library = loaded();
  if (!library) return base::fail(library.error());
  return &*library;
}

std::string NcclLibrary::why(ncclResult_t result) const {
  std::string text = error_text(result);
  // The last error of any communicator in the process; useful right after a failure.
  const char* last = last_error(nullptr);
  if (last != nullptr && last[0] != '\0') text += fmt::format(" ({})", last);
  return text;
}

}  // namespace assay::comm
