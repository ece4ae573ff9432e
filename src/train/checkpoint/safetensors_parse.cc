// Reads the header's JSON event by event: a tree would take many times its size, and would have
// forgotten names that come twice and where things stood.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

#include "train/checkpoint/safetensors_header.h"

namespace assay::checkpoint {
namespace {

constexpr std::size_t kMostDimensions = 64;

// Characters that tell a watcher how many of them were read.
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

class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  Header header;
  std::string problem;           // what stopped the reading, if something did
  std::size_t problem_byte = 0;  // where the parser says it stood; 0: it does not

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return refuse("a number is negative"); }
  bool number_float(number_float_t, const string_t&) override {
    return refuse("a number is no integer or is too large");
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
    if (list_ != nullptr || depth_ != 2) return unexpected("a text");
    if (in_metadata_) {
      header.metadata[key_] = value;
      return true;
    }
    if (key_ != "dtype") return unexpected("a text");
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
      if (!names_.insert(value).second)
        return refuse(fmt::format("'{}' stands there twice", value));
      name_ = value;
      return true;
    }
    if (!keys_.insert(value).second) {
      return refuse(fmt::format("'{}' stands twice in '{}'", value, name_));
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
    return refuse(fmt::format("{} stands where the header of a safetensors file has none", what));
  }
  bool finish_tensor() {
    if (!dtype_ || !shape_ || !offsets_ || offsets_->size() != 2) {
      return refuse(fmt::format("tensor '{}' lacks its dtype, shape or two data_offsets", name_));
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
  std::optional<Dtype> dtype_;
  std::optional<std::vector<std::int64_t>> shape_;
  std::optional<std::vector<std::int64_t>> offsets_;
  std::vector<std::int64_t>* list_ = nullptr;  // the one that is open
};

}  // namespace

base::Result<Header> parse_header(std::string_view json, std::int64_t data_bytes,
                                  const std::string& where) {
  if (!json.starts_with('{')) {
    return base::fail(header_error(where, kLengthBytes, "the header does not begin with '{'"));
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
