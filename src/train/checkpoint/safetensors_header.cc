#include "train/checkpoint/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"

namespace assay::checkpoint {
namespace {

constexpr std::size_t kAlignment = 8;

std::string quoted_json(const std::string& text) {
  return base::Json(text).dump();
}

base::Result<void> check_name(const std::string& name, const std::string& where) {
  if (!base::is_utf8(name)) {
    return base::fail(
        base::usage_error(where, fmt::format("tensor '{}' has a name that is no UTF-8", name)));
  }
  if (name == "__metadata__") {
    return base::fail(base::usage_error(where, "no tensor can be called '__metadata__'",
                                        "the format keeps that name for itself"));
  }
  return {};
}

}  // namespace

base::Result<Header> lay_out(std::span<const TensorInfo> tensors, Metadata metadata,
                             const std::string& where) {
  Header header{std::move(metadata), {}};
  std::unordered_set<std::string_view> names;
  std::int64_t at = 0;
  for (const TensorInfo& info : tensors) {
    ASSAY_TRY_VOID(check_name(info.name, where));
    if (!names.insert(info.name).second) {
      return base::fail(
          base::usage_error(where, fmt::format("two tensors are called '{}'", info.name)));
    }
    const auto bytes = info.bytes();
    std::int64_t end = 0;
    if (!bytes || __builtin_add_overflow(at, *bytes, &end)) {
      return base::fail(
          base::usage_error(where, fmt::format("tensor '{}' has an impossible shape [{}]",
                                               info.name, fmt::join(info.shape, ", "))));
    }
    header.tensors.push_back({info, at, end});
    at = end;
  }
  for (const auto& [key, value] : header.metadata) {
    if (!base::is_utf8(key) || !base::is_utf8(value)) {
      return base::fail(base::usage_error(where, fmt::format("metadata '{}' is no UTF-8", key)));
    }
  }
  return header;
}

base::Result<std::string> header_bytes(const Header& header, const std::string& where) {
  std::string text(kLengthBytes, '\0');
  text += '{';
  const char* separator = "";
  if (!header.metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : header.metadata) {
      text += separator + quoted_json(key) + ":" + quoted_json(value);
      separator = ",";
    }
    text += '}';
  }
  for (const TensorPlace& place : header.tensors) {
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", separator,
                        quoted_json(place.info.name), dtype_name(place.info.dtype),
                        fmt::join(place.info.shape, ","), place.begin, place.end);
    separator = ",";
  }
  text += '}';
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  const std::uint64_t length = text.size() - kLengthBytes;
  if (length > static_cast<std::uint64_t>(kMostHeaderBytes)) {
    return base::fail(base::usage_error(where, "the names of the tensors take more than 100 MB",
                                        "the format has no room for more; write several files"));
  }
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    text[i] = static_cast<char>(length >> (8 * i) & 0xff);
  }
  return text;
}

base::Error header_error(const std::string& where, std::int64_t offset, const std::string& what) {
  return base::failed_error(fmt::format("{}: byte {}", where, offset), what,
                            "this is no whole safetensors file");
}

base::Result<void> order_places(std::vector<TensorPlace>& places, std::int64_t data_at,
                                std::int64_t data_bytes, const std::string& where) {
  // Empty tensors share their place with the one that begins there.
  std::stable_sort(places.begin(), places.end(), [](const TensorPlace& a, const TensorPlace& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::int64_t at = 0;
  for (const TensorPlace& place : places) {
    if (place.end > data_bytes) {
      return base::fail(header_error(
          where, data_at + data_bytes,
          fmt::format(
              "tensor '{}' ends beyond the file, at byte {}", place.info.name,
              static_cast<std::uint64_t>(data_at) + static_cast<std::uint64_t>(place.end))));
    }
    if (place.begin != at) {
      return base::fail(header_error(where, data_at + std::min(at, place.begin),
                                     fmt::format("tensor '{}' {}", place.info.name,
                                                 place.begin < at ? "overlaps the one before it"
                                                                  : "leaves a hole before it")));
    }
    at = place.end;
  }
  if (at == data_bytes) return {};
  return base::fail(header_error(where, data_at + at,
                                 fmt::format("{} bytes belong to no tensor", data_bytes - at)));
}

}  // namespace assay::checkpoint
