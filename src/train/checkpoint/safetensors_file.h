// SafetensorsFile: a safetensors file for reading. It is checked as a whole when it is opened; its
// tensors are then looked at in place (mapped) or copied out.
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
  // Null when there is no such tensor.
  [[nodiscard]] const TensorPlace* find(std::string_view name) const;

  // The tensor's bytes where they lie, without a copy. If the file is cut meanwhile they read as
  // zeros and intact() becomes false. Some dozens of files can be mapped at once; beyond that this
  // is an error, and read() still works.
  [[nodiscard]] base::Result<std::span<const std::byte>> bytes(const TensorPlace& place) const;
  [[nodiscard]] bool intact() const { return !mapped_ || !mapped_->damaged(); }
  // Copies `target.size()` bytes from `offset` in the tensor on.
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
