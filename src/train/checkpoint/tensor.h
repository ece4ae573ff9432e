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

enum class Dtype : std::uint8_t { kF32, kBf16, kF16, kU16, kI32, kI64, kF8E4m3, kU8 };

// Bytes per element.
std::int64_t dtype_bytes(Dtype dtype);
// As in a safetensors header: "F32", "F8_E4M3".
std::string_view dtype_name(Dtype dtype);
std::optional<Dtype> dtype_named(std::string_view name);
// "F32, BF16, …", for errors.
std::string all_dtype_names();

struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;

  // Nothing if an extent is negative or the product overflows.
  [[nodiscard]] std::optional<std::int64_t> bytes() const;
  bool operator==(const TensorInfo&) const = default;
};

// Without an owner the memory is borrowed and must not change while the tensor is in use.
struct Tensor {
  TensorInfo info;
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner = {};
};

Tensor owned_tensor(TensorInfo info, std::vector<std::byte> data);

}  // namespace assay::checkpoint
