// RuleErrors: errors for broken rules (rules.h), with file and line of the key concerned. Internal
// to src/spec.
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
  // `path` is the path of `document` if it is itself part of a document: "price[2]".
  explicit RuleErrors(const Value& document, std::string path = {})
      : document_(document), path_(std::move(path)) {}

  // Whether the key is written in the document, as opposed to having its default.
  [[nodiscard]] bool written(std::string_view key) const { return document_.at(key) != nullptr; }

  // `key` is a dotted path; if it was not written, the nearest enclosing table is named.
  [[nodiscard]] tl::unexpected<base::Error> broken(std::string_view key, const std::string& what,
                                                   std::string hint = {}) const;

 private:
  const Value& document_;
  std::string path_;
};

// The product; nothing if it does not fit into 64 bits.
std::optional<std::int64_t> checked_product(std::initializer_list<std::int64_t> factors);

}  // namespace assay::spec
