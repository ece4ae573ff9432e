// Copies a rank's part of a state tensor into the whole tensor, or out of it, element by element:
// an independent check of the code that saves and restores.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "train/checkpoint/tensor.h"
#include "train/state.h"

namespace assay::train::testing {

// The index in the tensor of the i-th element of a piece.
inline std::int64_t element_of(const checkpoint::ElementRange& piece, std::int64_t i) {
  if (!piece.in_runs()) return piece.first + i;
  return piece.first + i / piece.run * piece.apart + i % piece.run;
}

// Calls copy(offset in the whole tensor, offset in the rank's part, size) for each element, in
// bytes.
template <class Copy>
void for_own_elements(const StateTensor& tensor, Copy copy) {
  const auto size = static_cast<std::size_t>(step::bytes_of(tensor.type));
  std::size_t at = 0;
  for (const checkpoint::ElementRange& piece : tensor.pieces(tensor.own)) {
    for (std::int64_t i = 0; i < piece.count; ++i, at += size) {
      copy(static_cast<std::size_t>(element_of(piece, i)) * size, at, size);
    }
  }
}

inline void put_own(const StateTensor& tensor, std::span<const std::byte> own,
                    std::span<std::byte> whole) {
  for_own_elements(tensor, [&](std::size_t to, std::size_t from, std::size_t size) {
    std::memcpy(whole.data() + to, own.data() + from, size);
  });
}

inline std::vector<std::byte> take_own(const StateTensor& tensor,
                                       std::span<const std::byte> whole) {
  std::vector<std::byte> own(
      static_cast<std::size_t>(tensor.own.count * step::bytes_of(tensor.type)));
  for_own_elements(tensor, [&](std::size_t from, std::size_t to, std::size_t size) {
    std::memcpy(own.data() + to, whole.data() + from, size);
  });
  return own;
}

}  // namespace assay::train::testing
