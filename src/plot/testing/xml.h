// A strict XML reader, for tests to check what was drawn. It shares no code with the writer.
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
  // A number that an attribute holds; fails the test when it is not one, or not finite.
  [[nodiscard]] double number(const std::string& attribute) const;
};

// Elements in the order in which they begin; nothing when anything is not well-formed: tags that
// do not balance, attributes without quotes or twice, a bare & or <, characters XML cannot hold.
std::optional<std::vector<Element>> parse_xml(std::string_view document);

// The elements of a drawing, and of those the ones with a name and class (empty: any). A drawing
// that is not well-formed fails the test and has none.
std::vector<Element> elements_of(std::string_view drawing);
std::vector<Element> elements_of(const Drawing& drawing);
std::vector<Element> those(const std::vector<Element>& elements, std::string_view name,
                           std::string_view class_name = "");
std::string description_of(const Drawing& drawing);  // as it is read back

}  // namespace assay::plot::testing
