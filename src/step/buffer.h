// What the ops of a step read and write. A buffer is memory with a name and a purpose; a view is a
// matrix inside one.
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
  kFp8,  // E4M3: four bits of exponent, three of mantissa
  kFp16,
};

constexpr std::int64_t bytes_of(Dtype type) {
  if (type == Dtype::kFp8) return 1;
  return type == Dtype::kF32 || type == Dtype::kI32 ? 4 : 2;
}

// Why the memory is there: the rows of the plan that people see.
enum class Storage : std::uint8_t {
  kWeights,
  kRemainders,  // the low halves of fp32 weights whose high halves are the bf16 weights
  kGradients,
  kMoments,
  kActivations,  // kept from the forward for the backward pass, or passed from op to op
  kInputs,       // tokens and targets
  kScalars,      // loss, norm, counters
  kGathered,     // weights of other ranks, as long as they are needed
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

// `rows` x `cols` elements, rows `stride` elements apart, from `offset` elements into the buffer.
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
