#include "spec/rule_error.h"

namespace assay::spec {

tl::unexpected<base::Error> RuleErrors::broken(std::string_view key, const std::string& what,
                                               std::string hint) const {
  const Value* nearest = nullptr;
  for (std::string_view path = key; nearest == nullptr && !path.empty();) {
    nearest = document_.at(path);
    const std::size_t dot = path.rfind('.');
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
  }
  const Value& node = nearest != nullptr ? *nearest : document_;
  const std::string where = path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  return base::fail(base::usage_error(node.origin().text(), where + ": " + what, std::move(hint)));
}

std::optional<std::int64_t> checked_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

}  // namespace assay::spec
