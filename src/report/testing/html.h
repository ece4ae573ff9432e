// A strict reader of the pages that src/report writes. It shares no code with what writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plot/testing/xml.h"

namespace assay::report::testing {

struct HtmlPage {
  std::vector<plot::testing::Element> elements;
  std::vector<std::string> scripts;  // what a browser would run
  std::vector<std::string> data;     // scripts that are JSON
  std::string style;
  std::string policy;  // Content-Security-Policy
};

// Fails the test when tags do not balance, attributes have no quotes, an element or attribute is
// not one that a page may have, an id stands twice, a link leads out of the page or nowhere, or the
// text of scripts and sheets could end them.
HtmlPage read_html(std::string_view document);

}  // namespace assay::report::testing
