// JSON output: every verb's --json goes through json_text().
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace assay::base {

// Keys keep the order in which a verb writes them, so output reads like the table it mirrors.
using Json = nlohmann::ordered_json;

// Two-space indented with a final newline. Never throws: a number that is not finite becomes null.
//
// Paths may contain any bytes, but JSON only UTF-8. If the string at NAME is not valid UTF-8, its
// invalid bytes become U+FFFD, for people, and NAME_escaped is added, for programs: the same string
// percent-encoded, so that decoding gives the original bytes. A list with such strings gets a list.
std::string json_text(const Json& document);
// The same as one line, for streams of documents (JSON lines).
std::string json_line(const Json& document);

// A value, of quantities their count; null where there is none.
template <class T>
Json or_null(const std::optional<T>& value) {
  if (!value) return nullptr;
  if constexpr (requires { value->count(); }) {
    return value->count();
  } else {
    return *value;
  }
}
// Null for an empty text.
inline Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace assay::base
