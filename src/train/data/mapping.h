// Mapping: a whole file as read-only memory, for shards.
//
// hash::MappedFile guards against files that are cut while they are mapped, but has few slots; a
// data set may have thousands of shards. Those beyond the slots are mapped without the guard.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "hash/mapped_file.h"

namespace assay::data {

class Mapping {
 public:
  static base::Result<Mapping> of(int fd, std::size_t size, const std::string& where);

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // The file was cut: some bytes read so far may have been zeros in place of its own.
  [[nodiscard]] bool damaged() const { return guarded_ && guarded_->damaged(); }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(const std::byte* at) const;
  };

  std::optional<hash::MappedFile> guarded_;
  std::unique_ptr<const std::byte, Unmap> unguarded_ = {nullptr, Unmap{0}};
  std::span<const std::byte> bytes_;
};

}  // namespace assay::data
