// TableKeys: reads the keys of a table in a small document, such as an experiment or a suite, one
// by one; keys that were not read are unknown. Errors name file and line of the value.
//
//   TableKeys keys(document);
//   ASSAY_TRY_VOID(keys.text("title", title));
//   ASSAY_TRY_VOID(keys.no_others());
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/value.h"

namespace assay::spec {

// "job.toml:12: steps is the string 'x', not a count"
base::Error wrong_value(const Value& value, std::string_view key, std::string_view expected);

class TableKeys {
 public:
  // `table` must outlive this.
  explicit TableKeys(const Value& table) : table_(table) {}

  // Null if the table has no such key.
  const Value* take(std::string key);

  // Targets are unchanged if the key is absent.
  base::Result<void> text(const char* key, std::string& target);
  base::Result<void> flag(const char* key, bool& target);
  base::Result<void> number(const char* key, double& target);
  // A whole number of 0 or more.
  template <class T>
  base::Result<void> count(const char* key, T& target) {
    const Value* value = take(key);
    if (value == nullptr) return {};
    const auto* number = value->get<std::int64_t>();
    if (number == nullptr || *number < 0) return base::fail(wrong_value(*value, key, "a count"));
    target = *number;
    return {};
  }
  // A string that is converted by `parse(where, text)`.
  template <class T, class Parse>
  base::Result<void> parsed(const char* key, T& target, const Parse& parse) {
    std::string given;
    ASSAY_TRY_VOID(text(key, given));
    if (given.empty()) return {};
    ASSAY_TRY(target, parse(fmt::format("{}: {}", table_.find(key)->origin().text(), key), given));
    return {};
  }

  // Call last: fails on an unknown key, and suggests the nearest known one.
  [[nodiscard]] base::Result<void> no_others() const;

 private:
  const Value& table_;
  std::vector<std::string> known_;
};

}  // namespace assay::spec
