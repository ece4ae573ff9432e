// The operands of a step's ops. A buffer is memory with a name and a purpose; a view is a matrix
// inside a buffer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::step {

enum class Dtype : std::uint8_t {
  kF32,
  kBf16,
  kU16,
  kI32,
  kFp8,  // E4M3: 4 exponent bits, 3 mantissa bits
  kFp16,
};

constexpr std::int64_t bytes_of(Dtype type) {
  if (type == Dtype::kFp8) return 1;
  return type == Dtype::kF32 || type == Dtype::kI32 ? 4 : 2;
}

// What the memory is for: the rows of the memory plan that users see.
enum class Storage : std::uint8_t {
  kWeights,
  kRemainders,  // the low halves of fp32 weights whose high halves are the bf16 weights
  kGradients,
  kMoments,
  kActivations,  // kept from the forward pass for the backward pass, or passed from op to op
  kInputs,       // tokens and targets
  kScalars,      // loss, norm, counters
  kGathered,     // weights gathered from other ranks, while they are needed
};
inline constexpr int kStorages = 8;

std::string_view to_text(Dtype type);
std::string_view to_text(Storage storage);

using BufferId = std::int32_t;

struct Buffer {
  std::string name;
  Storage storage = Storage::kActivations;
  Dtype type = Dtype::kF32;
  std::int64_t elements = 0;

  [[nodiscard]] std::int64_t bytes() const { return elements * bytes_of(type); }
};

// `rows` x `cols` elements, starting `offset` elements into the buffer, with rows `stride` elements
// apart.
struct View {
  BufferId buffer = -1;
  std::int64_t offset = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  [[nodiscard]] std::int64_t elements() const { return rows * cols; }
  [[nodiscard]] View columns(std::int64_t first, std::int64_t count) const {
    return {buffer, offset + first, rows, count, stride};
  }
  [[nodiscard]] View rows_from(std::int64_t first, std::int64_t count) const {
    return {buffer, offset + first * stride, count, cols, stride};
  }
  bool operator==(const View&) const = default;
};

}  // namespace assay::step
