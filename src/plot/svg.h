// Svg: elements written one after the other, well-formed whatever the text in them is.
//
//   Svg svg;
//   svg.open("g", {{"class", "mark"}});
//   svg.element("title", {}, "a < b");
//   svg.element("rect", {{"x", 4}, {"y", 8}, {"width", 15.5}, {"height", 16}});
//   svg.close();
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace assay::plot {

// Text for between tags and between quotes. What XML cannot hold (control characters, invalid
// UTF-8) is shown as \xNN.
std::string xml_escaped(std::string_view text);

// Back again; \xNN stays as it is.
std::string xml_unescaped(std::string_view text);

// A place on the drawing, to the hundredth of its unit: "12.5".
std::string coordinate(double value);

struct Attribute {
  Attribute(std::string_view its_name, std::string_view text) : name(its_name), value(text) {}
  Attribute(std::string_view its_name, double number) : name(its_name), value(coordinate(number)) {}

  std::string_view name;
  std::string value;
};

class Svg {
 public:
  using Attributes = std::initializer_list<Attribute>;

  void element(std::string_view name, Attributes attributes);
  void element(std::string_view name, Attributes attributes, std::string_view text);
  // What follows is inside, until close().
  void open(std::string_view name, Attributes attributes);
  void close();
  // The style sheet's text, and what another Svg wrote: taken as it is.
  void raw(std::string_view text) { text_ += text; }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void start(std::string_view name, Attributes attributes);

  std::string text_;
  std::vector<std::string> open_;
};

}  // namespace assay::plot
