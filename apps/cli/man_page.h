// The manual page of a program, generated from its verbs.
#pragma once

#include <string>

#include "cli/verb.h"

namespace assay::cli {

// In troff's man macros: `assay --man-page | man -l -`.
std::string man_page_of(const Verb& root);

}  // namespace assay::cli
