// ByteSource: the bytes of a file, plain or compressed, from the beginning.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "train/data/documents/input_files.h"

namespace assay::data {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills the buffer completely, except at the end of the file; after the end returns 0.
  virtual base::Result<std::size_t> read(std::span<char> buffer) = 0;
  // Bytes of the file on disk read so far.
  [[nodiscard]] virtual std::uint64_t file_bytes() const = 0;
};

// A file whose compressed data is truncated, or whose content does not match its name, is an error
// that names it. If `stop` becomes true, standard input counts as ended: its writer may be silent
// for ever.
base::Result<std::unique_ptr<ByteSource>> open_bytes(const InputFile& file,
                                                     const std::atomic<bool>* stop = nullptr);

}  // namespace assay::data
