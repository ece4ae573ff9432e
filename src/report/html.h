// A Page as one self-contained HTML file: it includes style, drawings, script and data, and its
// Content-Security-Policy forbids loading anything else. It is readable without scripts, and
// well-formed whatever bytes commands, paths and names contain.
#pragma once

#include <string>
#include <string_view>

#include "report/page.h"

namespace assay::report {

std::string html(const Page& page);

// "sha256-…": how a Content-Security-Policy identifies a text that it allows.
std::string policy_hash(std::string_view text);

}  // namespace assay::report
