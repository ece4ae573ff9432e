#include "base/json.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"

namespace assay::base {
namespace {

// Printable ASCII less the percent sign.
constexpr std::string_view kPlain =
    " !\"#$&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz"
    "{|}~";

bool is_other_than_utf8(const Json& value) {
  return value.is_string() && !is_utf8(value.get_ref<const std::string&>());
}

bool is_or_lists_other_than_utf8(const Json& value) {
  return is_other_than_utf8(value) ||
         (value.is_array() && std::any_of(value.begin(), value.end(), is_other_than_utf8));
}

bool holds_other_than_utf8(const Json& value) {
  return is_other_than_utf8(value) ||
         (value.is_structured() && std::any_of(value.begin(), value.end(), holds_other_than_utf8));
}

// For a string, or for the strings of a list.
Json escaped(const Json& value) {
  if (value.is_string()) return percent_encoded(value.get_ref<const std::string&>(), kPlain);
  if (!value.is_array()) return nullptr;
  Json list = Json::array();
  for (const Json& one : value) list.push_back(escaped(one));
  return list;
}

Json with_escapes(const Json& value) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& one : value) list.push_back(with_escapes(one));
    return list;
  }
  if (!value.is_object()) return value;
  Json object = Json::object();
  for (const auto& [key, member] : value.items()) {
    object[key] = with_escapes(member);
    if (is_or_lists_other_than_utf8(member)) object[key + "_escaped"] = escaped(member);
  }
  return object;
}

std::string written(const Json& document, int indent) {
  const auto replace = Json::error_handler_t::replace;
  if (!holds_other_than_utf8(document)) return document.dump(indent, ' ', false, replace) + "\n";
  return with_escapes(document).dump(indent, ' ', false, replace) + "\n";
}

}  // namespace

std::string json_text(const Json& document) {
  return written(document, 2);
}

std::string json_line(const Json& document) {
  return written(document, -1);
}

}  // namespace assay::base
