#include "train/checkpoint/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
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
        base::usage_error(where, fmt::format("tensor '{}' has a name that is not UTF-8", name)));
  }
  if (name == "__metadata__") {
    return base::fail(base::usage_error(where, "a tensor cannot be called '__metadata__'",
                                        "the format reserves that name"));
  }
  return {};
}

constexpr std::size_t kMostDimensions = 64;

// An iterator that records how many characters were read, for offsets in errors.
struct WatchedChars {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** seen;

  reference operator*() const { return *at; }
  WatchedChars& operator++() {
    *seen = ++at;
    return *this;
  }
  bool operator==(const WatchedChars& other) const { return at == other.at; }
};

// Parses the header event by event: a tree would take many times its size and would lose duplicate
// names and positions.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  Header header;
  std::string problem;           // why parsing stopped, if it did
  std::size_t problem_byte = 0;  // position reported by the parser; 0: none

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return refuse("a number is negative"); }
  bool number_float(number_float_t, const string_t&) override {
    return refuse("a number is not an integer or is too large");
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (list_ == nullptr) return unexpected("a number");
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return refuse("a number is too large");
    }
    if (list_->size() == kMostDimensions) return refuse("a list is too long");
    list_->push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool string(string_t& value) override {
    if (list_ != nullptr || depth_ != 2) return unexpected("a string");
    if (in_metadata_) {
      header.metadata[key_] = value;
      return true;
    }
    if (key_ != "dtype") return unexpected("a string");
    dtype_ = dtype_named(value);
    if (dtype_) return true;
    return refuse(fmt::format("tensor '{}' has the unknown type '{}'; known are {}", name_, value,
                              all_dtype_names()));
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool start_object(std::size_t) override {
    if (depth_ == 2 || list_ != nullptr) return unexpected("an object");
    if (++depth_ == 1) return true;
    in_metadata_ = name_ == "__metadata__";
    keys_.clear();
    shape_.reset();
    offsets_.reset();
    dtype_.reset();
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) {
      if (!names_.insert(value).second) return refuse(fmt::format("'{}' appears twice", value));
      name_ = value;
      return true;
    }
    if (!keys_.insert(value).second) {
      return refuse(fmt::format("'{}' appears twice in '{}'", value, name_));
    }
    key_ = value;
    if (in_metadata_ || value == "dtype" || value == "shape" || value == "data_offsets")
      return true;
    return refuse(fmt::format("tensor '{}' has the unknown key '{}'", name_, value));
  }
  bool end_object() override { return --depth_ == 1 && !in_metadata_ ? finish_tensor() : true; }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || list_ != nullptr || key_ == "dtype") {
      return unexpected("a list");
    }
    list_ = &(key_ == "shape" ? shape_ : offsets_).emplace();
    return true;
  }
  bool end_array() override {
    list_ = nullptr;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    problem_byte = position;
    return refuse("the header is not valid JSON");
  }

 private:
  bool refuse(std::string text) {
    problem = std::move(text);
    return false;
  }
  bool unexpected(const char* what) {
    return refuse(fmt::format("{} is not allowed here in the header of a safetensors file", what));
  }
  bool finish_tensor() {
    if (!dtype_ || !shape_ || !offsets_ || offsets_->size() != 2) {
      return refuse(
          fmt::format("tensor '{}' has no valid dtype, shape or two data_offsets", name_));
    }
    TensorPlace place{{name_, *dtype_, *std::move(shape_)}, (*offsets_)[0], (*offsets_)[1]};
    const auto bytes = place.info.bytes();
    if (!bytes) {
      return refuse(fmt::format("tensor '{}' has a shape that is too large to count", name_));
    }
    if (place.end < place.begin || *bytes != place.bytes()) {
      return refuse(fmt::format("tensor '{}' has {} bytes by its shape and {} by its offsets",
                                name_, *bytes, place.end < place.begin ? -1 : place.bytes()));
    }
    header.tensors.push_back(std::move(place));
    return true;
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  std::string name_;
  std::string key_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> keys_;
  std::optional<TensorDtype> dtype_;
  std::optional<std::vector<std::int64_t>> shape_;
  std::optional<std::vector<std::int64_t>> offsets_;
  std::vector<std::int64_t>* list_ = nullptr;  // the list being parsed
};

base::Result<void> order_places(std::vector<TensorPlace>& places, std::int64_t data_at,
                                std::int64_t data_bytes, const std::string& where) {
  // Empty tensors sort before the tensor that starts at the same offset.
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
      return base::fail(header_error(
          where, data_at + std::min(at, place.begin),
          fmt::format("tensor '{}' {}", place.info.name,
                      place.begin < at ? "overlaps the one before it" : "leaves a gap before it")));
    }
    at = place.end;
  }
  if (at == data_bytes) return {};
  return base::fail(header_error(where, data_at + at,
                                 fmt::format("{} bytes belong to no tensor", data_bytes - at)));
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
      return base::fail(base::usage_error(where, fmt::format("metadata '{}' is not UTF-8", key)));
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
                                        "that is the limit of the format; write several files"));
  }
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    text[i] = static_cast<char>(length >> (8 * i) & 0xff);
  }
  return text;
}

base::Error header_error(const std::string& where, std::int64_t offset, const std::string& what) {
  return base::failed_error(fmt::format("{}: byte {}", where, offset), what,
                            "this is not a complete safetensors file");
}

base::Result<Header> parse_header(std::string_view json, std::int64_t data_bytes,
                                  const std::string& where) {
  if (!json.starts_with('{')) {
    return base::fail(header_error(where, kLengthBytes, "the header does not start with '{'"));
  }
  HeaderEvents events;
  const char* seen = json.data();
  const WatchedChars first{json.data(), &seen};
  const WatchedChars last{json.data() + json.size(), &seen};
  if (!nlohmann::json::sax_parse(first, last, &events)) {
    const auto offset = events.problem_byte != 0
                            ? static_cast<std::int64_t>(events.problem_byte) - 1
                            : seen - json.data();
    return base::fail(header_error(where, kLengthBytes + offset, events.problem));
  }
  ASSAY_TRY_VOID(order_places(events.header.tensors,
                              kLengthBytes + static_cast<std::int64_t>(json.size()), data_bytes,
                              where));
  return std::move(events.header);
}

}  // namespace assay::checkpoint
