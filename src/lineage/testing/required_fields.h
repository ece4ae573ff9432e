// Checks documents for the required fields of public schemas: lists of paths and their types, taken
// from the schemas, independent of the code under test.
#pragma once

#include <regex>
#include <string>
#include <vector>

#include "base/json.h"

namespace assay::lineage::testing {

enum class Kind { kObject, kArray, kText, kNumber, kUri, kTime, kUuid, kHex, kAny };

// "/a/*/b": `*` is every element of an array or object, and there may be none; a path that ends in
// "?" may be missing.
struct FieldRule {
  std::string path;
  Kind kind;
};

inline bool is_of_kind(const base::Json& value, Kind kind) {
  const auto matches = [&value](const char* pattern) {
    return value.is_string() && std::regex_match(value.get<std::string>(), std::regex(pattern));
  };
  switch (kind) {
    case Kind::kObject:
      return value.is_object();
    case Kind::kArray:
      return value.is_array();
    case Kind::kText:
      return value.is_string() && !value.get<std::string>().empty();
    case Kind::kNumber:
      return value.is_number();
    case Kind::kUri:
      return matches("[A-Za-z][A-Za-z0-9+.-]*:[-A-Za-z0-9._~:/?#@!$&'()*+,;=%\\[\\]]+");
    case Kind::kTime:
      return matches("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?(Z|\\+00:00)");
    case Kind::kUuid:
      return matches("[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
    case Kind::kHex:
      return matches("[0-9a-f]{40,64}");
    case Kind::kAny:
      return !value.is_null();
  }
  return false;
}

inline void check_rule(const base::Json& value, std::string path, Kind kind, const std::string& at,
                       std::vector<std::string>& problems) {
  if (path.empty()) {
    if (!is_of_kind(value, kind)) problems.push_back(at + " is " + value.dump());
    return;
  }
  const std::size_t end = path.find('/', 1);
  std::string key = path.substr(1, end == std::string::npos ? end : end - 1);
  const std::string rest = end == std::string::npos ? "" : path.substr(end);
  const bool optional = key.ends_with('?');
  if (optional) key.pop_back();
  if (key == "*") {
    for (const auto& item : value.items()) {
      check_rule(item.value(), rest, kind, at + "/" + item.key(), problems);
    }
  } else if (value.is_object() && value.contains(key)) {
    check_rule(value[key], rest, kind, at + "/" + key, problems);
  } else if (!optional) {
    problems.push_back(at + " has no " + key);
  }
}

inline std::vector<std::string> problems_of(const base::Json& document,
                                            const std::vector<FieldRule>& rules) {
  std::vector<std::string> problems;
  for (const FieldRule& rule : rules) check_rule(document, rule.path, rule.kind, "", problems);
  return problems;
}

}  // namespace assay::lineage::testing
