// Tensors as stored in files: name, type, shape, and bytes in host memory. The trainer's buffers
// are copied to these when they are saved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::checkpoint {

enum class TensorDtype : std::uint8_t { kF32, kBf16, kF16, kU16, kI32, kI64, kF8E4m3, kU8 };

// Bytes per element.
std::int64_t dtype_bytes(TensorDtype dtype);
// As in a safetensors header: "F32", "F8_E4M3".
std::string_view dtype_name(TensorDtype dtype);
std::optional<TensorDtype> dtype_named(std::string_view name);
// "F32, BF16, …", for errors.
std::string all_dtype_names();

struct TensorInfo {
  std::string name;
  TensorDtype dtype = TensorDtype::kF32;
  std::vector<std::int64_t> shape;

  // Nothing if an extent is negative or the product overflows.
  [[nodiscard]] std::optional<std::int64_t> bytes() const;
  // Requires bytes() to have a value.
  [[nodiscard]] std::int64_t elements() const { return *bytes() / dtype_bytes(dtype); }
  bool operator==(const TensorInfo&) const = default;
};

// Some of a tensor's elements, in row-major order: `count` elements from `first` on. If `run` is
// set, they are `run` elements of each of several consecutive rows, starting in the same column.
struct ElementRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t run = 0;    // contiguous elements per row; 0: all are contiguous
  std::int64_t apart = 0;  // distance between the starts of runs: the tensor's row length

  [[nodiscard]] bool in_runs() const { return run > 0; }
  // After the last element.
  [[nodiscard]] std::int64_t end() const {
    return in_runs() ? first + (count / run - 1) * apart + run : first + count;
  }
  bool operator==(const ElementRange&) const = default;
};
// Whether this is a valid range of the tensor.
bool is_piece_of(const TensorInfo& whole, const ElementRange& elements);

// The entry under which a file stores a range of a tensor: the tensor itself if the range is all of
// it, otherwise one-dimensional and named "NAME[FIRST:END]" or "NAME[FIRST:END,RUN/APART]".
TensorInfo entry_of(const TensorInfo& whole, const ElementRange& elements);

// Without an owner the memory is borrowed and must not change while the tensor is in use.
struct Tensor {
  TensorInfo info;  // of the whole tensor
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner = {};
  std::optional<ElementRange> elements = {};  // which elements `data` holds; nothing: all
};

Tensor owned_tensor(TensorInfo info, std::vector<std::byte> data);

// A stored element as a number, from its dtype_bytes() bytes, little-endian. Integers beyond 2^53
// are rounded.
double element_value(TensorDtype dtype, std::span<const std::byte> bytes);

// |a - b|; integers are subtracted before the result is rounded.
double element_difference(TensorDtype dtype, std::span<const std::byte> a,
                          std::span<const std::byte> b);

}  // namespace assay::checkpoint
