// Value: a parsed TOML document as a tree in which every node knows where it was written.
//
// toml.cc creates it, compose.cc merges several (extends, --set), fields.h turns it into typed
// specs. We have our own tree because a merged document has nodes from several files, and each
// error must name the file and line of its node.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/money.h"

namespace assay::spec {

struct Origin {
  std::string source;  // a file as the user named it, "presets/…" when embedded, or "--set k=v"
  int line = 0;        // 0 if there are no lines: in a --set

  [[nodiscard]] std::string text() const;  // "job.toml:12"
};

class Value {
 public:
  using Array = std::vector<Value>;
  using Table = std::map<std::string, Value, std::less<>>;
  // TOML times, and dates with times, are not used in specs; only the kind is kept.
  struct Timestamp {};
  using Data =
      std::variant<bool, std::int64_t, double, std::string, base::Date, Timestamp, Array, Table>;

  Value() : data_(Table{}) {}
  Value(Data data, Origin origin) : data_(std::move(data)), origin_(std::move(origin)) {}

  [[nodiscard]] const Data& data() const { return data_; }
  [[nodiscard]] const Origin& origin() const { return origin_; }

  template <class T>
  [[nodiscard]] const T* get() const {
    return std::get_if<T>(&data_);
  }
  template <class T>
  [[nodiscard]] T* get() {
    return std::get_if<T>(&data_);
  }

  // The member `key` of a table; null if this is not a table or has no such key.
  [[nodiscard]] const Value* find(std::string_view key) const;
  // The node at a dotted path such as "cluster.device.memory".
  [[nodiscard]] const Value* at(std::string_view path) const;

  // The value for messages: "4.5", "the string 'abc'", "a table"; long strings are shortened.
  [[nodiscard]] std::string shown() const;

 private:
  Data data_;
  Origin origin_;
};

}  // namespace assay::spec
