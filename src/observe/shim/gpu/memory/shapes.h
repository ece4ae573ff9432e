// Bytes of a shape of memory, before the driver has allocated it.
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

// Such arrays have no memory of their own: memory mapped into them counts where it was created.
constexpr unsigned kWithoutMemory = 0x40 | 0x80;  // CUDA_ARRAY3D_SPARSE, …_DEFERRED_MAPPING

// CUarray_format. Most have a size per channel; packed, planar and compressed formats have a size
// per element, some of them in half bytes: so sizes are in half bytes.
struct Format {
  unsigned halves;  // of an element, or of a channel of it
  bool by_channel;
  bool blocks;  // 4 × 4 elements at a time
};
constexpr Format format_of(unsigned format) {
  switch (format) {
    case 0x02:  // integers of 16 bits, half
    case 0x09:
    case 0x10:
    case 0xC3:  // normalised, 16 bits
    case 0xC4:
    case 0xC5:
    case 0xC9:
    case 0xCA:
    case 0xCB:
      return {4, true, false};
    case 0x03:  // integers of 32 bits, float
    case 0x0A:
    case 0x20:
      return {8, true, false};
    case 0x91:  // BC1, BC4
    case 0x92:
    case 0x97:
    case 0x98:
      return {1, false, true};
    case 0x93:  // BC2, BC3, BC5, BC6H, BC7
    case 0x94:
    case 0x95:
    case 0x96:
    case 0x99:
    case 0x9A:
    case 0x9B:
    case 0x9C:
    case 0x9D:
    case 0x9E:
      return {2, false, true};
    case 0xB0:  // NV12
      return {3, false, false};
    case 0xA2:  // NV16, YUY2
    case 0xA5:
      return {4, false, false};
    case 0x9F:  // P010, P016, and 4:4:4 in planes of 8 bits
    case 0xA1:
    case 0xB2:
    case 0xB4:
      return {6, false, false};
    case 0x50:  // 10, 10, 10 and 2 bits; P210, P216, Y210, Y216, AYUV, Y410
    case 0xA3:
    case 0xA4:
    case 0xA6:
    case 0xA7:
    case 0xA8:
    case 0xA9:
      return {8, false, false};
    case 0xB3:  // 4:4:4 in planes of 16 bits
    case 0xB5:
      return {12, false, false};
    case 0xB1:  // Y416
      return {16, false, false};
    default:  // 8 bits
      return {2, true, false};
  }
}
inline std::uint64_t at_least_one(std::size_t value) {
  return value == 0 ? 1 : value;
}
inline std::uint64_t whole_blocks(std::uint64_t elements) {
  constexpr std::uint64_t kSide = 4;
  return elements / kSide * kSide + (elements % kSide == 0 ? 0 : kSide);
}
// The maximum if it does not fit into 64 bits.
inline std::uint64_t product(std::uint64_t one, std::uint64_t other) {
  std::uint64_t bytes = 0;
  return __builtin_mul_overflow(one, other, &bytes) ? ~std::uint64_t{0} : bytes;
}
// Without the padding that the driver adds.
inline std::uint64_t bytes_of(std::size_t width, std::size_t height, std::size_t depth,
                              unsigned format, unsigned channels) {
  const Format of = format_of(format);
  const std::uint64_t columns = of.blocks ? whole_blocks(at_least_one(width)) : at_least_one(width);
  const std::uint64_t rows = of.blocks ? whole_blocks(at_least_one(height)) : at_least_one(height);
  const std::uint64_t halves = of.by_channel ? std::uint64_t{channels} * of.halves : of.halves;
  const std::uint64_t elements = product(product(columns, rows), at_least_one(depth));
  if (halves % 2 == 0) return product(elements, halves / 2);
  const std::uint64_t twice = product(elements, halves);
  return twice == ~std::uint64_t{0} ? twice : twice / 2 + twice % 2;
}
inline std::uint64_t bytes_of(const Array2d* array) {
  if (array == nullptr) return 0;
  return bytes_of(array->width, array->height, 0, array->format, array->channels);
}
inline std::uint64_t bytes_of(const Array3d* array) {
  if (array == nullptr || (array->flags & kWithoutMemory) != 0) return 0;
  return bytes_of(array->width, array->height, array->depth, array->format, array->channels);
}
// Every level halves each dimension, to at least one.
inline std::uint64_t bytes_of(const Array3d* array, unsigned levels) {
  if (array == nullptr || (array->flags & kWithoutMemory) != 0) return 0;
  std::uint64_t sum = 0;
  constexpr unsigned kMostLevels = 32;
  for (unsigned level = 0; level < levels && level < kMostLevels; ++level) {
    const std::uint64_t bytes = bytes_of(array->width >> level, array->height >> level,
                                         array->depth >> level, array->format, array->channels);
    if (__builtin_add_overflow(sum, bytes, &sum)) return ~std::uint64_t{0};
  }
  return sum;
}
// Rows are padded as usual; the driver then reports the actual pitch.
inline std::uint64_t pitched(std::size_t width, std::size_t height) {
  constexpr std::size_t kUsualPitch = 512;
  return width > ~std::uint64_t{0} - kUsualPitch
             ? ~std::uint64_t{0}
             : product((width + kUsualPitch - 1) / kUsualPitch * kUsualPitch, height);
}

}  // namespace assay::gpu
