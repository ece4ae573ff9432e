#include "spec/value.h"

#include <fmt/format.h>

#include "base/text.h"

namespace assay::spec {
namespace {

constexpr std::size_t kShownColumns = 40;

std::string shown_fraction(double value) {
  std::string text = fmt::format("{}", value);
  // 4.0 would read as 4, a whole number, and leave the reader wondering what is wrong with it.
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

struct Shower {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return shown_fraction(value); }
  std::string operator()(const std::string& value) const {
    return fmt::format("the string '{}'", base::shortened(base::printable(value), kShownColumns));
  }
  std::string operator()(base::Date value) const { return "the date " + base::to_text(value); }
  std::string operator()(Value::Timestamp) const { return "a time"; }
  std::string operator()(const Value::Array&) const { return "a list"; }
  std::string operator()(const Value::Table&) const { return "a table"; }
};

}  // namespace

std::string Origin::text() const {
  return line > 0 ? source + ":" + std::to_string(line) : source;
}

const Value* Value::find(std::string_view key) const {
  const auto* table = get<Table>();
  if (table == nullptr) return nullptr;
  const auto found = table->find(key);
  return found == table->end() ? nullptr : &found->second;
}

const Value* Value::at(std::string_view path) const {
  const Value* node = this;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    node = node->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return node;
}

std::string Value::shown() const {
  return std::visit(Shower{}, data_);
}

}  // namespace assay::spec
