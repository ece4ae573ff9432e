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
  // Fills the buffer from the start; fewer bytes only at the end, and then 0.
  virtual base::Result<std::size_t> read(std::span<char> buffer) = 0;
  // Bytes of the file on disk that were read so far.
  [[nodiscard]] virtual std::uint64_t file_bytes() const = 0;
};

// A file that ends in the middle of its compressed data, or is not what its name says, is an error
// that names it. Standard input ends when `stop`, if given, becomes true: its writer may be silent.
base::Result<std::unique_ptr<ByteSource>> open_bytes(const InputFile& file,
                                                     const std::atomic<bool>* stop = nullptr);

}  // namespace assay::data
