// The header of a safetensors file: eight bytes of length (little-endian), then JSON that names
// every tensor and the range of its bytes, then the data. Used by safetensors_writer and
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
// The limit of the format.
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

// The layout of tensors stored one after the other. Names that are not UTF-8, duplicate or
// reserved, and sizes that overflow, are errors on `where`.
base::Result<Header> lay_out(std::span<const TensorInfo> tensors, Metadata metadata,
                             const std::string& where);

// Length and JSON, padded with spaces so that the data start at a multiple of eight.
base::Result<std::string> header_bytes(const Header& header, const std::string& where);

// Parses the JSON of a file with `data_bytes` of data. Everything the format forbids is refused
// with the offset in the file: bad JSON, duplicate names, unknown types, shapes that contradict the
// length, bytes that belong to two tensors, to none, or are beyond the end of the file.
base::Result<Header> parse_header(std::string_view json, std::int64_t data_bytes,
                                  const std::string& where);

// An error at an offset in the file.
base::Error header_error(const std::string& where, std::int64_t offset, const std::string& what);

}  // namespace assay::checkpoint
