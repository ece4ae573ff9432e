// How many bytes a shape of memory has, before the driver has made it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::gpu {

// CUDA_ARRAY_DESCRIPTOR_v2, CUDA_ARRAY3D_DESCRIPTOR_v2
struct Array2d {
  std::size_t width, height;
  unsigned format, channels;
};
struct Array3d {
  std::size_t width, height, depth;
  unsigned format, channels, flags;
};

inline std::uint64_t channel_bytes(unsigned format) {
  switch (format) {
    case 0x02:
    case 0x09:
    case 0x10:
      return 2;
    case 0x03:
    case 0x0A:
    case 0x20:
      return 4;
    default:
      return 1;
  }
}
inline std::uint64_t at_least_one(std::size_t value) {
  return value == 0 ? 1 : value;
}
// More than there can be, where it does not fit into 64 bits.
inline std::uint64_t product(std::uint64_t one, std::uint64_t other) {
  std::uint64_t bytes = 0;
  return __builtin_mul_overflow(one, other, &bytes) ? ~std::uint64_t{0} : bytes;
}
// Without the padding that the driver adds.
inline std::uint64_t bytes_of(std::size_t width, std::size_t height, std::size_t depth,
                              unsigned format, unsigned channels) {
  const std::uint64_t element = std::uint64_t{channels} * channel_bytes(format);
  return product(product(product(at_least_one(width), at_least_one(height)), at_least_one(depth)),
                 element);
}
inline std::uint64_t bytes_of(const Array2d* array) {
  if (array == nullptr) return 0;
  return bytes_of(array->width, array->height, 0, array->format, array->channels);
}
inline std::uint64_t bytes_of(const Array3d* array) {
  if (array == nullptr) return 0;
  return bytes_of(array->width, array->height, array->depth, array->format, array->channels);
}
// Every level has half of everything, or one.
inline std::uint64_t bytes_of(const Array3d* array, unsigned levels) {
  if (array == nullptr) return 0;
  std::uint64_t sum = 0;
  constexpr unsigned kMostLevels = 32;
  for (unsigned level = 0; level < levels && level < kMostLevels; ++level) {
    const std::uint64_t bytes = bytes_of(array->width >> level, array->height >> level,
                                         array->depth >> level, array->format, array->channels);
    if (__builtin_add_overflow(sum, bytes, &sum)) return ~std::uint64_t{0};
  }
  return sum;
}
// Rows are padded as they mostly are; the driver then says how much it was.
inline std::uint64_t pitched(std::size_t width, std::size_t height) {
  constexpr std::size_t kUsualPitch = 512;
  return width > ~std::uint64_t{0} - kUsualPitch
             ? ~std::uint64_t{0}
             : product((width + kUsualPitch - 1) / kUsualPitch * kUsualPitch, height);
}

}  // namespace assay::gpu
