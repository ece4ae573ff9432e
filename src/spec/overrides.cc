#include "spec/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "spec/nesting.h"
#include "spec/toml.h"

namespace assay::spec {
namespace {

constexpr std::size_t kSourceColumns = 200;

// Whether a --set may write there: names with single dots between them, in any script.
bool is_key_path(std::string_view path) {
  constexpr std::string_view kAscii =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  const auto allowed = [&](char c) {
    return (c & 0x80) != 0 || kAscii.find(c) != std::string_view::npos;
  };
  return !path.empty() && path.front() != '.' && path.back() != '.' &&
         path.find("..") == std::string_view::npos &&
         std::all_of(path.begin(), path.end(), allowed);
}

}  // namespace

base::Result<void> apply_override(Value& document, const std::string& text) {
  // Shortened, because every node of the value keeps it.
  const std::string source = base::shortened(base::printable("--set " + text), kSourceColumns);
  const std::size_t equals = text.find('=');
  const std::string_view path = base::trim(std::string_view(text).substr(0, equals));
  if (equals == std::string::npos || !is_key_path(path)) {
    return base::fail(
        base::usage_error(source, "expected KEY=VALUE", "for example --set model.layers=4"));
  }
  if (std::count(path.begin(), path.end(), '.') >= kMaxNameParts) {
    return base::fail(
        base::usage_error(source, fmt::format("a name of more than {} parts", kMaxNameParts)));
  }
  Value* node = &document;
  std::string_view rest = path;
  while (true) {
    auto* table = node->get<Value::Table>();
    if (table == nullptr) {
      *node = Value(Value::Table{}, Origin{source, 0});
      table = node->get<Value::Table>();
    }
    const std::size_t dot = rest.find('.');
    Value& next =
        table->try_emplace(std::string(rest.substr(0, dot)), Value::Table{}, Origin{source, 0})
            .first->second;
    if (dot == std::string_view::npos) {
      next = parse_override_value(base::trim(std::string_view(text).substr(equals + 1)), source);
      return {};
    }
    node = &next;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace assay::spec
