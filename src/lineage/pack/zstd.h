// Files compressed and decompressed by the program zstd, which runs as a child process.
#pragma once

#include <filesystem>
#include <optional>

#include "base/process/process.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::lineage {

// A descriptor to write to or read from, and the zstd process at its other end, if one is needed.
class ZstdStream {
 public:
  // What is written to descriptor() goes into `file`, compressed if `compressed`.
  static base::Result<ZstdStream> writing_to(int file, bool compressed);
  // The contents of `file`, decompressed if its first bytes are those of zstd.
  static base::Result<ZstdStream> reading_from(int file, const std::filesystem::path& where);

  [[nodiscard]] int descriptor() const { return stream_.get(); }
  // Call after the last write, or after reading to the end. An error if zstd failed.
  base::Result<void> finish(const std::filesystem::path& where);

 private:
  ZstdStream(base::UniqueFd stream, std::optional<base::Process> process)
      : stream_(std::move(stream)), process_(std::move(process)) {}

  base::UniqueFd stream_;
  std::optional<base::Process> process_;
};

}  // namespace assay::lineage
