// SafetensorsWriter: writes a safetensors file as a stream. The header comes first, from the
// tensors' descriptions; their bytes follow in the same order, in pieces of any size.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "train/checkpoint/output_file.h"
#include "train/checkpoint/safetensors_header.h"

namespace assay::checkpoint {

class SafetensorsWriter {
 public:
  static base::Result<SafetensorsWriter> create(const std::filesystem::path& path,
                                                std::span<const TensorInfo> tensors,
                                                Metadata metadata = {});

  // The next bytes. Not copied: they must not change until finish() returns.
  base::Result<void> append(std::span<const std::byte> data);
  // Fails if bytes are missing.
  base::Result<FileRecord> finish();

 private:
  SafetensorsWriter(OutputFile file, std::unique_ptr<std::string> header, std::string where,
                    std::int64_t data_bytes)
      : header_(std::move(header)),
        file_(std::move(file)),
        where_(std::move(where)),
        missing_(data_bytes) {}

  std::unique_ptr<std::string> header_;  // hashed in the background by file_, so it must outlive it
  OutputFile file_;
  std::string where_;
  std::int64_t missing_;
};

// Writes a whole file. A tensor whose size contradicts its shape is an error.
base::Result<FileRecord> write_safetensors(const std::filesystem::path& path,
                                           std::span<const Tensor> tensors, Metadata metadata = {});

}  // namespace assay::checkpoint
