// What the two files that read tokenizer.json share. The front door is load_tokenizer.h.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace assay::data {

// Not base::Json, whose objects keep their order and are searched one by one: vocabularies have a
// hundred thousand keys.
using JsonNode = nlohmann::json;

// Null where there is none.
const JsonNode& json_member(const JsonNode& object, const char* name);

tl::unexpected<base::Error> unsupported(const std::string& where, const std::string& what,
                                        const JsonNode& value);
tl::unexpected<base::Error> malformed(const std::string& where, const std::string& what,
                                      const std::string& expected);

// The pattern that splits text into words, from the file's pre_tokenizer.
base::Result<std::string> pattern_of(const JsonNode& pre_tokenizer, const std::string& where);

}  // namespace assay::data
