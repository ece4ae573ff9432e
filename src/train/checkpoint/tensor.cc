#include "train/checkpoint/tensor.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace assay::checkpoint {
namespace {

struct DtypeRow {
  TensorDtype dtype;
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array kDtypes = {
    DtypeRow{TensorDtype::kF32, "F32", 4},        DtypeRow{TensorDtype::kBf16, "BF16", 2},
    DtypeRow{TensorDtype::kF16, "F16", 2},        DtypeRow{TensorDtype::kU16, "U16", 2},
    DtypeRow{TensorDtype::kI32, "I32", 4},        DtypeRow{TensorDtype::kI64, "I64", 8},
    DtypeRow{TensorDtype::kF8E4m3, "F8_E4M3", 1}, DtypeRow{TensorDtype::kU8, "U8", 1},
};

const DtypeRow& row_of(TensorDtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)];
}

}  // namespace

std::int64_t dtype_bytes(TensorDtype dtype) {
  return row_of(dtype).bytes;
}

std::string_view dtype_name(TensorDtype dtype) {
  return row_of(dtype).name;
}

std::optional<TensorDtype> dtype_named(std::string_view name) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::string all_dtype_names() {
  std::string names;
  for (const DtypeRow& row : kDtypes) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::optional<std::int64_t> TensorInfo::bytes() const {
  std::int64_t product = dtype_bytes(dtype);
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return product;
}

TensorInfo entry_of(const TensorInfo& whole, const ElementRange& elements) {
  if (elements.first == 0 && elements.count == whole.elements()) return whole;
  const std::string runs =
      elements.in_runs() ? fmt::format(",{}/{}", elements.run, elements.apart) : "";
  return {fmt::format("{}[{}:{}{}]", whole.name, elements.first, elements.end(), runs),
          whole.dtype,
          {elements.count}};
}

bool is_piece_of(const TensorInfo& whole, const ElementRange& e) {
  if (!whole.bytes()) return false;
  const std::int64_t elements = whole.elements();
  if (e.first < 0 || e.count <= 0 || e.first > elements || e.count > elements - e.first) {
    return false;
  }
  if (!e.in_runs()) return e.run == 0;
  return whole.shape.size() == 2 && e.apart == whole.shape[1] && e.run < e.apart &&
         e.count % e.run == 0 && e.first % e.apart + e.run <= e.apart &&
         e.count / e.run <= whole.shape[0] - e.first / e.apart;
}

Tensor owned_tensor(TensorInfo info, std::vector<std::byte> data) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(data));
  return {std::move(info), *owner, owner};
}

}  // namespace assay::checkpoint
