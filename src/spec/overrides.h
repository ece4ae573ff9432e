// --set: one key of a document written over. Internal to src/spec.
#pragma once

#include <string>

#include "base/result.h"
#include "spec/value.h"

namespace assay::spec {

// Writes `text`, "path=value", into the document, making the tables on the way.
base::Result<void> apply_override(Value& document, const std::string& text);

// Takes out what an override makes meaningless and no override sets: the other ways to give the
// length of training, and the keys about shards once fsdp is 1. For a document whose extends
// are resolved.
void drop_replaced(Value& document);

}  // namespace assay::spec
