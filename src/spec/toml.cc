#include "spec/toml.h"

// No spec is nested deeper than this. toml++ walks nested values recursively, so that a hostile
// file could otherwise overflow the stack; names_too_deep() bounds the other way of nesting.
#define TOML_MAX_NESTED_VALUES 16
#define TOML_EXCEPTIONS 0
#include <fmt/format.h>
#include <toml++/toml.h>

namespace assay::spec {
namespace {

Value convert(const toml::node& node, const std::string& source);

Origin origin_of(const toml::node& node, const std::string& source) {
  return {source, static_cast<int>(node.source().begin.line)};
}

Value::Data convert_data(const toml::node& node, const std::string& source) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_date()) {
    const toml::date date = value->get();
    return fmt::format("{:04}-{:02}-{:02}", date.year, date.month, date.day);
  }
  if (const auto* array = node.as_array()) {
    Value::Array items;
    for (const toml::node& item : *array) items.push_back(convert(item, source));
    return items;
  }
  if (const auto* table = node.as_table()) {
    Value::Table members;
    for (const auto& [key, member] : *table) {
      members.emplace(std::string(key.str()), convert(member, source));
    }
    return members;
  }
  return Value::Timestamp{};
}

Value convert(const toml::node& node, const std::string& source) {
  return Value(convert_data(node, source), origin_of(node, source));
}

constexpr int kMaxNames = 16;

// The line of a dotted name (a.b.c) with more parts than any spec has, or 0. Looks at the bare
// text, so a string with that many dotted words on one line counts as well; none is missed.
int names_too_deep(std::string_view text) {
  constexpr std::string_view kNameCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-\"'";
  int line = 1;
  int dots = 0;
  bool in_name = false;  // a dot joins names only right after one
  for (const char c : text) {
    if (c == '.' && in_name) {
      if (++dots >= kMaxNames) return line;
      in_name = false;
    } else if (kNameCharacters.find(c) != std::string_view::npos || (c & 0x80) != 0) {
      in_name = true;
    } else if (c != ' ' && c != '\t') {
      in_name = false;
      dots = 0;
      line += c == '\n' ? 1 : 0;
    }
  }
  return 0;
}

}  // namespace

base::Result<Value> parse_toml(std::string_view text, const std::string& source) {
  if (const int line = names_too_deep(text); line > 0) {
    return base::fail(base::usage_error(Origin{source, line}.text(),
                                        fmt::format("a name of more than {} parts", kMaxNames)));
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    const Origin origin{source, static_cast<int>(error.source().begin.line)};
    return base::fail(
        base::usage_error(origin.text(), "not valid TOML: " + std::string(error.description())));
  }
  return convert(parsed.table(), source);
}

Value parse_override_value(std::string_view text, const std::string& source) {
  if (names_too_deep(text) > 0) return Value(std::string(text), Origin{source, 0});
  const toml::parse_result parsed = toml::parse("value = " + std::string(text));
  // More than one key means the text smuggled in a line break: then it is no single value.
  if (parsed && parsed.table().size() == 1) {
    if (const toml::node* node = parsed.table().get("value")) {
      Value value = convert(*node, source);
      return Value(value.data(), Origin{source, 0});
    }
  }
  return Value(std::string(text), Origin{source, 0});
}

}  // namespace assay::spec
