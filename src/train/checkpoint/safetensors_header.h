// The header of a safetensors file: eight bytes of length (little-endian), then JSON that names
// every tensor and where its bytes lie, then the data. Made by safetensors_writer, read by
// safetensors_file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/tensor.h"

namespace assay::checkpoint {

inline constexpr std::int64_t kLengthBytes = 8;
// What the format allows; a longer one is an attack or noise.
inline constexpr std::int64_t kMostHeaderBytes = 100'000'000;

using Metadata = std::map<std::string, std::string>;

struct TensorPlace {
  TensorInfo info;
  std::int64_t begin = 0;  // bytes into the data
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t bytes() const { return end - begin; }
};

struct Header {
  Metadata metadata;
  std::vector<TensorPlace> tensors;  // in the order of their bytes
};

// Where tensors lie that follow one another in this order. Names that are no UTF-8, are taken or
// are reserved, and sizes that do not fit, are errors on `where`.
base::Result<Header> lay_out(std::span<const TensorInfo> tensors, Metadata metadata,
                             const std::string& where);

// Length and JSON, padded with spaces so that the data begin at a multiple of eight.
base::Result<std::string> header_bytes(const Header& header, const std::string& where);

// The JSON of a file whose data are `data_bytes` long. Everything that the format forbids is
// refused, with the offset in the file: bad JSON, names twice, unknown types, shapes that are not
// their length, bytes that belong to two tensors, to none, or lie beyond the file.
base::Result<Header> parse_header(std::string_view json, std::int64_t data_bytes,
                                  const std::string& where);

// Parts of that. An error says the offset in the file; places are ordered by their bytes, each of
// which belongs to exactly one tensor. `data_at`: where the data begin in the file.
base::Error header_error(const std::string& where, std::int64_t offset, const std::string& what);
base::Result<void> order_places(std::vector<TensorPlace>& places, std::int64_t data_at,
                                std::int64_t data_bytes, const std::string& where);

}  // namespace assay::checkpoint
