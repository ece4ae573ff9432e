#include "spec/table_keys.h"

#include <algorithm>

#include "base/suggestion.h"
#include "base/text.h"

namespace assay::spec {

base::Error wrong_value(const Value& value, std::string_view key, std::string_view expected) {
  return base::usage_error(value.origin().text(),
                           fmt::format("{} is {}, not {}", key, value.shown(), expected));
}

const Value* TableKeys::take(std::string key) {
  const Value* found = table_.find(key);
  known_.push_back(std::move(key));
  return found;
}

base::Result<void> TableKeys::text(const char* key, std::string& target) {
  const Value* value = take(key);
  if (value == nullptr) return {};
  const auto* string = value->get<std::string>();
  if (string == nullptr) return base::fail(wrong_value(*value, key, "a string"));
  target = *string;
  return {};
}

base::Result<void> TableKeys::flag(const char* key, bool& target) {
  const Value* value = take(key);
  if (value == nullptr) return {};
  if (value->get<bool>() == nullptr) return base::fail(wrong_value(*value, key, "true or false"));
  target = *value->get<bool>();
  return {};
}

base::Result<void> TableKeys::number(const char* key, double& target) {
  const Value* value = take(key);
  if (value == nullptr) return {};
  if (const auto* whole = value->get<std::int64_t>()) {
    target = static_cast<double>(*whole);
    return {};
  }
  if (value->get<double>() == nullptr) return base::fail(wrong_value(*value, key, "a number"));
  target = *value->get<double>();
  return {};
}

base::Result<void> TableKeys::no_others() const {
  const auto* table = table_.get<Value::Table>();
  if (table == nullptr) {
    return base::fail(base::usage_error(table_.origin().text(),
                                        fmt::format("{} stands for a table", table_.shown())));
  }
  for (const auto& [key, value] : *table) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    return base::fail(base::usage_error(value.origin().text(), fmt::format("unknown key '{}'", key),
                                        base::suggestion(key, known_)));
  }
  return {};
}

}  // namespace assay::spec
