// The machinery behind schema.h: one description of a section's keys serves four visitors.
//
//   Reader      Value -> struct, with an error that names file:line, key, expectation, nearest name
//   JsonWriter  struct -> JSON
//   RowWriter   struct -> rows of text for people
//   KeyLister   -> the table of keys that docs and `assay presets keys` show
//
// Internal to src/spec; included by schema.cc only.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "spec/compose.h"
#include "spec/field_types.h"
#include "spec/schema.h"
#include "spec/value.h"

namespace assay::spec {

struct Key {
  std::string_view name;
  std::string_view meaning;
  bool required = false;
  std::optional<double> min = std::nullopt;
  std::optional<double> max = std::nullopt;
  std::string_view fallback = {};  // description of the default, if it depends on other keys
};

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};

// A section type is one that schema.cc describes with describe(visitor, section).
struct AnyVisitor {
  template <class T>
  void operator()(const Key&, T&) {}
};
template <class T>
concept Section = requires(AnyVisitor& visitor, T& section) {
  describe(visitor, section);
};

// Written with a unit, so that a range of plain numbers would be meaningless in messages.
template <class T>
concept WithUnit = requires {
  FieldType<T>::json_suffix();
};

// "100,000", "0.000001"
std::string number_text(double number);

inline std::string join_path(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

class Reader {
 public:
  Reader(const Value& table, std::string path) : table_(table), path_(std::move(path)) {}

  template <class T>
  void operator()(const Key& key, T& field) {
    known_.insert(std::string(key.name));
    if (error_) return;
    const Value* value = table_.find(key.name);
    const std::string path = join_path(path_, key.name);
    if (value != nullptr) return read(key, path, *value, field);
    if (!key.required || missing_) return;
    missing_ = base::usage_error(
        table_.origin().text(),
        fmt::format("{}: missing; expected {} ({})", path, expectation<T>(key), key.meaning));
  }

  // Reports the first wrong value or unknown key; a missing key only after those, because a
  // misspelt key may explain it. `wider` are names elsewhere in the schema that the user may have
  // meant.
  base::Result<void> finish(const std::vector<std::string>& wider) {
    find_unknown(wider);
    if (error_) return base::fail(*error_);
    if (missing_) return base::fail(*missing_);
    return {};
  }

 private:
  static constexpr std::size_t kNameColumns = 60;

  void find_unknown(const std::vector<std::string>& wider) {
    if (error_) return;
    for (const auto& [name, value] : *table_.get<Value::Table>()) {
      if (known_.contains(name)) continue;
      std::vector<std::string> candidates(known_.begin(), known_.end());
      if (may_extend(path_)) candidates.emplace_back("extends");
      candidates.insert(candidates.end(), wider.begin(), wider.end());
      const std::string shown = base::shortened(base::printable(name), kNameColumns);
      error_ = base::usage_error(value.origin().text(),
                                 fmt::format("{}: unknown key", join_path(path_, shown)),
                                 base::suggestion(name, candidates));
      return;
    }
  }

  template <class T>
  void read(const Key& key, const std::string& path, const Value& value, T& field) {
    if constexpr (is_optional<T>::value) {
      typename T::value_type inner{};
      read(key, path, value, inner);
      field = inner;
    } else if constexpr (is_vector<T>::value) {
      read_list(path, value, field);
    } else if constexpr (Section<T>) {
      read_section(path, value, field);
    } else {
      read_scalar(key, path, value, field);
    }
  }

  template <class T>
  void read_scalar(const Key& key, const std::string& path, const Value& value, T& field) {
    auto parsed = FieldType<T>::parse(value);
    if (!parsed) {
      error_ = base::usage_error(value.origin().text(), path + ": " + parsed.error().what,
                                 parsed.error().hint);
      return;
    }
    if constexpr (requires { FieldType<T>::magnitude(*parsed); }) {
      const double size = FieldType<T>::magnitude(*parsed);
      if ((key.min && size < *key.min) || (key.max && size > *key.max)) {
        std::string expected;
        if constexpr (WithUnit<T>)
          expected = "at least " + FieldType<T>::text(T(1));  // of its unit, as schema.cc has it
        else
          expected = expectation<T>(key);
        error_ = base::usage_error(
            value.origin().text(),
            fmt::format("{}: expected {}, got {}", path, expected, FieldType<T>::text(*parsed)));
        return;
      }
    }
    field = *parsed;
  }

  template <class T>
  void read_section(const std::string& path, const Value& value, T& field) {
    if (value.get<Value::Table>() == nullptr) {
      error_ = base::usage_error(value.origin().text(),
                                 fmt::format("{}: expected a table, got {}", path, value.shown()));
      return;
    }
    Reader reader(value, path);
    describe(reader, field);
    reader.find_unknown({});
    error_ = reader.error_;
    if (!missing_) missing_ = reader.missing_;
  }

  template <class T>
  void read_list(const std::string& path, const Value& value, std::vector<T>& field) {
    const auto* items = value.get<Value::Array>();
    if (items == nullptr) {
      error_ = base::usage_error(value.origin().text(),
                                 fmt::format("{}: expected a list, got {}", path, value.shown()));
      return;
    }
    for (std::size_t i = 0; i < items->size() && !error_; ++i) {
      T item{};
      read(Key{}, fmt::format("{}[{}]", path, i), (*items)[i], item);
      field.push_back(std::move(item));
    }
  }

 public:
  // "a whole number from 1 to 65,536"
  template <class T>
  static std::string expectation(const Key& key) {
    if constexpr (is_optional<T>::value) {
      return expectation<typename T::value_type>(key);
    } else if constexpr (is_vector<T>::value) {
      return "a list";
    } else if constexpr (Section<T>) {
      return "a table";
    } else {
      std::string text = FieldType<T>::expected();
      if (WithUnit<T> || !key.min || !key.max) return text;
      return fmt::format("{} from {} to {}", text, number_text(*key.min), number_text(*key.max));
    }
  }

 private:
  const Value& table_;
  std::string path_;
  std::set<std::string> known_;
  std::optional<base::Error> error_;
  std::optional<base::Error> missing_;
};

class JsonWriter {
 public:
  template <class T>
  void operator()(const Key& key, T& field) {
    json_[std::string(key.name) + std::string(suffix<T>())] = to_json(field);
  }
  [[nodiscard]] base::Json take() { return std::move(json_); }

 private:
  template <class T>
  static std::string_view suffix() {
    if constexpr (is_optional<T>::value) {
      return suffix<typename T::value_type>();
    } else if constexpr (requires { FieldType<T>::json_suffix(); }) {
      return FieldType<T>::json_suffix();
    } else {
      return {};
    }
  }

  template <class T>
  static base::Json to_json(T& field) {
    if constexpr (is_optional<T>::value) {
      return field ? to_json(*field) : base::Json(nullptr);
    } else if constexpr (is_vector<T>::value) {
      base::Json list = base::Json::array();
      for (auto& item : field) list.push_back(to_json(item));
      return list;
    } else if constexpr (Section<T>) {
      JsonWriter writer;
      describe(writer, field);
      return writer.take();
    } else {
      return FieldType<T>::json(field);
    }
  }

  base::Json json_ = base::Json::object();
};

// Unset keys have no row; keys of inner sections are dotted.
class RowWriter {
 public:
  explicit RowWriter(std::string path) : path_(std::move(path)) {}

  template <class T>
  void operator()(const Key& key, T& field) {
    const std::string path = join_path(path_, key.name);
    if constexpr (is_optional<T>::value) {
      if (field) (*this)(key, *field);
    } else if constexpr (Section<T>) {
      RowWriter inner(path);
      describe(inner, field);
      for (KeyRow& row : inner.rows_) rows_.push_back(std::move(row));
    } else {
      rows_.push_back({path, FieldType<T>::text(field)});
    }
  }
  [[nodiscard]] std::vector<KeyRow> take() { return std::move(rows_); }

 private:
  std::string path_;
  std::vector<KeyRow> rows_;
};

class KeyLister {
 public:
  explicit KeyLister(std::string path) : path_(std::move(path)) {}

  template <class T>
  void operator()(const Key& key, T& field) {
    const std::string path = join_path(path_, key.name);
    if constexpr (Section<T>) {
      KeyLister lister(path);
      if (may_extend(path)) lister.extends("what this section starts from");
      describe(lister, field);
      for (KeyDoc& doc : lister.docs_) docs_.push_back(std::move(doc));
    } else {
      docs_.push_back(
          {path, Reader::expectation<T>(key), default_text(key, field), std::string(key.meaning)});
    }
  }
  // `extends` is not a field of any struct: compose.cc has resolved it before reading begins.
  void extends(std::string_view meaning) {
    docs_.push_back({join_path(path_, "extends"), "the name of a preset or a file", "unset",
                     std::string(meaning)});
  }
  [[nodiscard]] std::vector<KeyDoc> take() { return std::move(docs_); }

 private:
  template <class T>
  static std::string default_text(const Key& key, const T& field) {
    if (key.required) return "required";
    if (!key.fallback.empty()) return std::string(key.fallback);
    if constexpr (is_optional<T>::value || is_vector<T>::value) {
      return "unset";
    } else {
      return FieldType<T>::text(field);
    }
  }

  std::string path_;
  std::vector<KeyDoc> docs_;
};

}  // namespace assay::spec
