// --set: one key of a document written over. Internal to src/spec.
#pragma once

#include <string>

#include "base/result.h"
#include "spec/value.h"

namespace assay::spec {

// Writes `text`, "path=value", into the document, making the tables on the way.
base::Result<void> apply_override(Value& document, const std::string& text);

}  // namespace assay::spec
