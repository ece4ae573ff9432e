// A Page as Markdown: tables, and the descriptions of charts. Untrusted text cannot become markup.
#pragma once

#include <string>

#include "report/page.h"

namespace assay::report {

std::string markdown(const Page& page);

}  // namespace assay::report
