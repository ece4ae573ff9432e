// Files compressed by the program zstd, which runs beside this one.
#pragma once

#include <filesystem>
#include <optional>

#include "base/process/process.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::lineage {

// A descriptor that is written to or read from, and the program at its other end, if one is needed.
class ZstdStream {
 public:
  // What is written to descriptor() is compressed into `file`, or goes there as it is.
  static base::Result<ZstdStream> writing_to(int file, bool compressed);
  // The contents of `file`, decompressed if it is (by its first bytes).
  static base::Result<ZstdStream> reading_from(int file, const std::filesystem::path& where);

  [[nodiscard]] int descriptor() const { return stream_.get(); }
  // After the last write, or after the end was read: an error unless the program was content.
  base::Result<void> finish(const std::filesystem::path& where);

 private:
  ZstdStream(base::UniqueFd stream, std::optional<base::Process> process)
      : stream_(std::move(stream)), process_(std::move(process)) {}

  base::UniqueFd stream_;
  std::optional<base::Process> process_;
};

}  // namespace assay::lineage
