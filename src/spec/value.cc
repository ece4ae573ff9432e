#include "spec/value.h"

namespace assay::spec {

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

std::string_view Value::type_name() const {
  struct Namer {
    std::string_view operator()(bool) const { return "true or false"; }
    std::string_view operator()(std::int64_t) const { return "a whole number"; }
    std::string_view operator()(double) const { return "a fraction"; }
    std::string_view operator()(const std::string&) const { return "a string"; }
    std::string_view operator()(Timestamp) const { return "a time"; }
    std::string_view operator()(const Array&) const { return "a list"; }
    std::string_view operator()(const Table&) const { return "a table"; }
  };
  return std::visit(Namer{}, data_);
}

}  // namespace assay::spec
