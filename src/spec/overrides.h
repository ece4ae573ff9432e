// --set: overrides one key of a document. Internal to src/spec.
#pragma once

#include <string>

#include "base/result.h"
#include "spec/value.h"

namespace assay::spec {

// Writes `text`, "path=value", into the document, creating tables as needed.
base::Result<void> apply_override(Value& document, const std::string& text);

// Removes keys that an override makes meaningless, unless they are overridden too: the other ways
// to give the length of training, and the keys about shards if fsdp is 1. All `extends` must have
// been resolved.
void drop_replaced(Value& document);

}  // namespace assay::spec
