// XmlWriter: writes SVG, XML and HTML element by element. The only code that escapes markup: tags
// always balance, and text can never become markup.
//
//   XmlWriter xml;
//   xml.open("g", {{"class", "mark"}});
//   xml.element("title", {}, "a < b");
//   xml.element("rect", {{"x", 4}, {"y", 8}, {"width", 15.5}, {"height", 16}});
//   xml.close();
//   std::string document = xml.text();
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace assay::plot {

// A coordinate, rounded to a hundredth: "12.5".
std::string coordinate(double value);

struct XmlAttribute {
  XmlAttribute(std::string_view its_name, std::string_view text) : name(its_name), value(text) {}
  XmlAttribute(std::string_view its_name, double number)
      : name(its_name), value(coordinate(number)) {}

  std::string_view name;
  std::string value;
};

// Names of elements and attributes are literals of the program; values and text may be any bytes.
// What XML cannot hold (control characters, invalid UTF-8) is written as \xNN.
class XmlWriter {
 public:
  using Attributes = std::initializer_list<XmlAttribute>;

  // <name/>. In HTML only for elements that never have content (meta, link).
  void element(std::string_view name, Attributes attributes);
  void element(std::string_view name, Attributes attributes, std::string_view text);
  // As element(), but line breaks are kept instead of being shown as \x0a.
  void multiline_element(std::string_view name, Attributes attributes, std::string_view text);
  // The content of <style> or <script>, which is not markup. It must not contain "</" followed by
  // the element's name; this is checked.
  void verbatim_element(std::string_view name, Attributes attributes, std::string_view text);
  // What follows is inside this element, until close().
  void open(std::string_view name, Attributes attributes);
  void close();
  // Appends everything another writer wrote; all its elements must be closed.
  void append(const XmlWriter& fragment);

  // All elements must be closed.
  [[nodiscard]] const std::string& text() const;

 private:
  void start(std::string_view name, Attributes attributes);
  void end(std::string_view name);

  std::string text_;
  std::vector<std::string> open_;
};

}  // namespace assay::plot
