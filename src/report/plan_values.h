// Reads the output of `assay plan --json` key by key: whatever is missing or has another type is
// unknown, never an error.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "base/json.h"

namespace assay::report {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

inline double number_in(const base::Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json.at(key).is_number()) return kUnknown;
  return json.at(key).get<double>();
}

inline std::string text_in(const base::Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json.at(key).is_string()) return {};
  return json.at(key).get<std::string>();
}

inline bool flag_in(const base::Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json.at(key) == true;
}

// An empty list if there is none; the caller skips entries that are not objects.
inline const base::Json& list_in(const base::Json& json, const char* key) {
  static const base::Json kNone = base::Json::array();
  if (!json.is_object() || !json.contains(key) || !json.at(key).is_array()) return kNone;
  return json.at(key);
}

inline const base::Json& object_in(const base::Json& json, const char* key) {
  static const base::Json kNone = base::Json::object();
  if (!json.is_object() || !json.contains(key) || !json.at(key).is_object()) return kNone;
  return json.at(key);
}

}  // namespace assay::report
