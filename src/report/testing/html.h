// A strict reader of the pages that src/report writes. It shares no code with the writer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plot/testing/xml.h"

namespace assay::report::testing {

struct HtmlPage {
  std::vector<plot::testing::Element> elements;
  std::vector<std::string> scripts;  // that a browser would execute
  std::vector<std::string> data;     // script elements that hold JSON
  std::string style;
  std::string policy;  // Content-Security-Policy
};

// Fails the test if tags do not balance, attributes are unquoted, an element or attribute is not
// allowed on a page, an id occurs twice, a link leads nowhere or out of the page, or the text of a
// script or style sheet could end it.
HtmlPage read_html(std::string_view document);

}  // namespace assay::report::testing
