// Blocks of a Page as HTML. For html.cc.
#pragma once

#include <string_view>

#include "plot/svg.h"
#include "report/page.h"

namespace assay::report {

// What writes well-formed drawings writes well-formed pages. An element without text is only
// written so where HTML knows it as one that has none.
using Html = plot::Svg;

// `heading` is that of the section: a caption that only repeats it is not shown again.
void write_block(Html& out, const Block& block, std::string_view heading);
void write_verdict(Html& out, const Verdict& verdict);

}  // namespace assay::report
