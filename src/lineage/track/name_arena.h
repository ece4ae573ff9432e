// NameArena: file names, one after the other, never moved or given back. A name is found again by
// the number that add() returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace assay::lineage {

class NameArena {
 public:
  // Names of up to kLongest bytes; file systems stop at 255.
  static constexpr std::size_t kLongest = 4096;

  std::uint32_t add(std::string_view name);
  [[nodiscard]] std::string_view operator[](std::uint32_t at) const;
  // Terminated by NUL; stays where it is as long as the arena.
  [[nodiscard]] const char* text(std::uint32_t at) const { return (*this)[at].data(); }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{64} << 10U;

  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t used_ = kChunkBytes;  // of the last chunk
};

}  // namespace assay::lineage
