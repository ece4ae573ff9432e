// RuleErrors: errors of broken rules (rules.h), with file and line of the key they are about.
// Internal to src/spec.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "spec/value.h"

namespace assay::spec {

class RuleErrors {
 public:
  // `path` is what leads to `document` when it is itself a part of one: "price[2]".
  explicit RuleErrors(const Value& document, std::string path = {})
      : document_(document), path_(std::move(path)) {}

  // Whether a key stands in the document, for keys whose default is no statement.
  [[nodiscard]] bool written(std::string_view key) const { return document_.at(key) != nullptr; }

  // `key` is a dotted path; when it was not written itself, the nearest table around it is named.
  [[nodiscard]] tl::unexpected<base::Error> broken(std::string_view key, const std::string& what,
                                                   std::string hint = {}) const;

 private:
  const Value& document_;
  std::string path_;
};

// The product, or nothing when it does not fit 64 bits.
std::optional<std::int64_t> checked_product(std::initializer_list<std::int64_t> factors);

}  // namespace assay::spec
