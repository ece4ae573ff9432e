#include "spec/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
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

bool is_override(const Value* value) {
  return value != nullptr && value->origin().source.starts_with("--set ");
}

void drop_inherited(Value& document, std::string_view section, std::string_view key) {
  auto* sections = document.get<Value::Table>();
  const auto found = sections->find(section);
  if (found == sections->end()) return;
  auto* table = found->second.get<Value::Table>();
  if (table == nullptr) return;
  const auto at = table->find(key);
  if (at != table->end() && !is_override(&at->second)) table->erase(at);
}

}  // namespace

void drop_replaced(Value& document) {
  constexpr std::array<std::string_view, 3> kLengths = {"steps", "tokens",
                                                        "tokens_per_matmul_parameter"};
  const bool given = std::any_of(kLengths.begin(), kLengths.end(), [&](std::string_view key) {
    return is_override(document.at(fmt::format("train.{}", key)));
  });
  for (const std::string_view key : kLengths) {
    if (given) drop_inherited(document, "train", key);
  }
  const Value* fsdp = document.at("layout.fsdp");
  const auto* degree = is_override(fsdp) ? fsdp->get<std::int64_t>() : nullptr;
  if (degree == nullptr || *degree != 1) return;
  drop_inherited(document, "layout", "zero");
  drop_inherited(document, "layout", "unit");
}

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
        base::usage_error(source, fmt::format("a key of more than {} parts", kMaxNameParts)));
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
