#include "train/data/token_type.h"

#include <fmt/format.h>

#include "base/suggestion.h"
#include "base/text.h"

namespace assay::data {

std::string_view name_of(TokenType type) {
  return type == TokenType::kU16 ? "u16" : "u32";
}

std::vector<std::string> token_type_names() {
  return {"u16", "u32"};
}

base::Result<TokenType> parse_token_type(std::string_view name) {
  if (name == "u16") return TokenType::kU16;
  if (name == "u32") return TokenType::kU32;
  return base::fail(base::usage_error({}, fmt::format("unknown token type '{}'", name),
                                      base::suggestion(name, token_type_names())));
}

}  // namespace assay::data
