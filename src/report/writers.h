// A Page as text. Whatever bytes commands, paths and names hold, each of these is well-formed.
#pragma once

#include <string>

#include "base/json.h"
#include "report/page.h"

namespace assay::report {

// One file that needs nothing else: style, drawings, script and data are in it, and its
// Content-Security-Policy lets it load nothing. Without scripts all of it can be read.
std::string html(const Page& page);
// Tables as Markdown has them; charts as what they say in words.
std::string markdown(const Page& page);
// Sections and data.
base::Json json(const Page& page);

}  // namespace assay::report
