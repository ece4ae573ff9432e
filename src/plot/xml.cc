#include "plot/xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/text.h"
#include "base/utf8.h"

namespace assay::plot {
namespace {

void append_escaped(std::string& out, std::string_view text) {
  const std::string shown = base::printable(text);
  for (std::string_view rest = shown; !rest.empty();) {
    const base::Utf8Char c = base::first_utf8_char(rest);
    switch (c.code_point) {
      case U'&':
        out += "&amp;";
        break;
      case U'<':
        out += "&lt;";
        break;
      case U'>':
        out += "&gt;";
        break;
      case U'"':
        out += "&quot;";
        break;
      case 0xFFFE:  // valid in UTF-8, not in XML
      case 0xFFFF:
        out += "\uFFFD";
        break;
      default:
        out += rest.substr(0, c.size);
    }
    rest.remove_prefix(c.size);
  }
}

}  // namespace

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

void XmlWriter::start(std::string_view name, Attributes attributes) {
  text_ += '<';
  text_ += name;
  for (const XmlAttribute& attribute : attributes) {
    fmt::format_to(std::back_inserter(text_), " {}=\"", attribute.name);
    append_escaped(text_, attribute.value);
    text_ += '"';
  }
}

void XmlWriter::end(std::string_view name) {
  fmt::format_to(std::back_inserter(text_), "</{}>\n", name);
}

void XmlWriter::element(std::string_view name, Attributes attributes) {
  start(name, attributes);
  text_ += "/>\n";
}

void XmlWriter::element(std::string_view name, Attributes attributes, std::string_view text) {
  start(name, attributes);
  text_ += '>';
  append_escaped(text_, text);
  end(name);
}

void XmlWriter::multiline_element(std::string_view name, Attributes attributes,
                                  std::string_view text) {
  start(name, attributes);
  text_ += '>';
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t line_end = std::min(text.find('\n', at), text.size());
    if (at > 0) text_ += '\n';
    append_escaped(text_, text.substr(at, line_end - at));
    at = line_end + 1;
  }
  end(name);
}

void XmlWriter::verbatim_element(std::string_view name, Attributes attributes,
                                 std::string_view text) {
  ASSAY_CHECK(text.find(fmt::format("</{}", name)) == std::string_view::npos,
              "verbatim content cannot end its element");
  start(name, attributes);
  text_ += '>';
  text_ += text;
  end(name);
}

void XmlWriter::open(std::string_view name, Attributes attributes) {
  start(name, attributes);
  text_ += ">\n";
  open_.emplace_back(name);
}

void XmlWriter::close() {
  ASSAY_CHECK(!open_.empty(), "every close() has its open()");
  end(open_.back());
  open_.pop_back();
}

void XmlWriter::append(const XmlWriter& fragment) {
  text_ += fragment.text();
}

const std::string& XmlWriter::text() const {
  ASSAY_CHECK(open_.empty(), "every open() has its close()");
  return text_;
}

}  // namespace assay::plot
