// Value: a parsed TOML document as a tree in which every node remembers where it was written.
//
// toml.cc makes it, compose.cc merges several (extends, --set), fields.h turns it into typed specs.
// Our own tree because a merged document has nodes from several files, and each error must name
// the file and line of the very node it is about.
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
  int line = 0;        // 0 where lines make no sense: in a --set

  [[nodiscard]] std::string text() const;  // "job.toml:12"
};

class Value {
 public:
  using Array = std::vector<Value>;
  using Table = std::map<std::string, Value, std::less<>>;
  // A TOML time, or a date with one, has no use in a spec; it is kept as its kind only.
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

  // The member `key` of a table; null when this is no table or has no such key.
  [[nodiscard]] const Value* find(std::string_view key) const;
  // The node at a dotted path such as "cluster.device.memory".
  [[nodiscard]] const Value* at(std::string_view path) const;

  // What stands here, for messages: "4.5", "the string 'abc'", "a table"; long strings shortened.
  [[nodiscard]] std::string shown() const;

 private:
  Data data_;
  Origin origin_;
};

}  // namespace assay::spec
