#include "lineage/track/containers.h"

#include <algorithm>
#include <cstring>

namespace assay::lineage {

// In memory: two bytes of length, the name, NUL.
std::uint32_t NameArena::add(std::string_view name) {
  const auto length = static_cast<std::uint16_t>(std::min(name.size(), kLongest));
  const std::size_t needed = sizeof length + length + 1;
  if (used_ + needed > kChunkBytes) {
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(kChunkBytes));
    used_ = 0;
  }
  char* const at = chunks_.back().get() + used_;
  std::memcpy(at, &length, sizeof length);
  std::memcpy(at + sizeof length, name.data(), length);
  at[sizeof length + length] = 0;
  const std::size_t position = (chunks_.size() - 1) * kChunkBytes + used_;
  used_ += needed;
  return static_cast<std::uint32_t>(position);
}

std::string_view NameArena::operator[](std::uint32_t at) const {
  const char* const from = chunks_[at / kChunkBytes].get() + at % kChunkBytes;
  std::uint16_t length = 0;
  std::memcpy(&length, from, sizeof length);
  return {from + sizeof length, length};
}

}  // namespace assay::lineage
