// A Page as one HTML file that needs nothing else: style, drawings, script and data are in it, and
// its Content-Security-Policy lets it load nothing. It is readable without scripts, and well-formed
// whatever bytes commands, paths and names hold.
#pragma once

#include <string>
#include <string_view>

#include "report/page.h"

namespace assay::report {

std::string html(const Page& page);

// "sha256-…": how a Content-Security-Policy names the one text that it allows.
std::string policy_hash(std::string_view text);

}  // namespace assay::report
