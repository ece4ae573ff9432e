// SafetensorsFile: reads a safetensors file. The whole header is checked on opening; tensors are
// then accessed in place (mapped) or copied out.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hash/mapped_file.h"
#include "train/checkpoint/safetensors_header.h"

namespace assay::checkpoint {

class SafetensorsFile {
 public:
  // Errors name the file and the offset.
  static base::Result<SafetensorsFile> open(const std::filesystem::path& path);
  static base::Result<SafetensorsFile> open(base::UniqueFd fd, const std::string& where);

  [[nodiscard]] const Header& header() const { return header_; }
  // Null if there is no such tensor.
  [[nodiscard]] const TensorPlace* find(std::string_view name) const;

  // The tensor's bytes, memory-mapped. If the file is truncated meanwhile, they read as zeros and
  // intact() becomes false. Only a few dozen files can be mapped at once; beyond that this fails,
  // but read() still works.
  [[nodiscard]] base::Result<std::span<const std::byte>> bytes(const TensorPlace& place) const;
  [[nodiscard]] bool intact() const { return !mapped_ || !mapped_->damaged(); }
  // Copies `target.size()` bytes starting at `offset` in the tensor.
  [[nodiscard]] base::Result<void> read(const TensorPlace& place, std::int64_t offset,
                                        std::span<std::byte> target) const;

 private:
  SafetensorsFile() = default;

  base::UniqueFd fd_;
  std::string where_;
  Header header_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::int64_t data_at_ = 0;
  std::unique_ptr<hash::MappedFile> mapped_;
};

}  // namespace assay::checkpoint
