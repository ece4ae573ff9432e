// A strict XML reader for tests of drawings. It shares no code with the writer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plot/canvas.h"

namespace assay::plot::testing {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;                  // its own, decoded
  std::vector<std::string> parents;  // outermost first

  [[nodiscard]] bool has_class(std::string_view wanted) const;
  // An attribute as a number; fails the test if it is not a finite number.
  [[nodiscard]] double number(const std::string& attribute) const;
};

// Elements in document order; nothing if the document is not well-formed: unbalanced tags, unquoted
// or duplicate attributes, a bare & or <, characters not allowed in XML.
std::optional<std::vector<Element>> parse_xml(std::string_view document);

// elements_of(): all elements of a drawing; those(): the ones with a name and class (empty: any). A
// drawing that is not well-formed fails the test and yields none.
std::vector<Element> elements_of(std::string_view drawing);
std::vector<Element> elements_of(const Drawing& drawing);
std::vector<Element> those(const std::vector<Element>& elements, std::string_view name,
                           std::string_view class_name = "");
std::string description_of(const Drawing& drawing);  // as it is read back

}  // namespace assay::plot::testing
