// JSON documents in what a program printed: one that takes a line, or many lines, between others
// that are none.
#pragma once

#include <functional>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "compare/pattern.h"

namespace assay::compare {

// Calls visit(document) for every object and list that begins a line and ends one, in order; not
// for those inside others.
base::Result<void> each_document(std::string_view text, const Patience& patience,
                                 const std::function<void(const base::Json&)>& visit);

}  // namespace assay::compare
