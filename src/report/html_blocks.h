// Blocks of a Page as HTML, for html.cc.
#pragma once

#include <string_view>

#include "plot/xml.h"
#include "report/page.h"

namespace assay::report {

using Html = plot::XmlWriter;

// `heading` is the title of the section; a caption that repeats it is hidden.
void write_block(Html& out, const Block& block, std::string_view heading);
void write_verdict(Html& out, const Verdict& verdict);

}  // namespace assay::report
