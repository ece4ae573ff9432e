#include "plot/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/utf8.h"

namespace assay::plot {

std::string xml_escaped(std::string_view text) {
  const std::string shown = base::printable(text);
  std::string escaped;
  escaped.reserve(shown.size());
  for (std::string_view rest = shown; !rest.empty();) {
    const base::Utf8Char c = base::first_utf8_char(rest);
    switch (c.code_point) {
      case U'&':
        escaped += "&amp;";
        break;
      case U'<':
        escaped += "&lt;";
        break;
      case U'>':
        escaped += "&gt;";
        break;
      case U'"':
        escaped += "&quot;";
        break;
      case 0xFFFE:  // UTF-8 may say these two, XML may not
      case 0xFFFF:
        escaped += "\uFFFD";
        break;
      default:
        escaped += rest.substr(0, c.size);
    }
    rest.remove_prefix(c.size);
  }
  return escaped;
}

std::string xml_unescaped(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 4> kEntities = {
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}}};
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto entity = std::find_if(kEntities.begin(), kEntities.end(), [&](const auto& known) {
      return text.substr(i).starts_with(known.first);
    });
    plain += entity == kEntities.end() ? text[i] : entity->second;
    i += entity == kEntities.end() ? 1 : entity->first.size();
  }
  return plain;
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

void Svg::start(std::string_view name, Attributes attributes) {
  text_ += '<';
  text_ += name;
  for (const Attribute& attribute : attributes) {
    fmt::format_to(std::back_inserter(text_), " {}=\"{}\"", attribute.name,
                   xml_escaped(attribute.value));
  }
}

void Svg::element(std::string_view name, Attributes attributes) {
  start(name, attributes);
  text_ += "/>\n";
}

void Svg::element(std::string_view name, Attributes attributes, std::string_view text) {
  start(name, attributes);
  fmt::format_to(std::back_inserter(text_), ">{}</{}>\n", xml_escaped(text), name);
}

void Svg::open(std::string_view name, Attributes attributes) {
  start(name, attributes);
  text_ += ">\n";
  open_.emplace_back(name);
}

void Svg::close() {
  ASSAY_CHECK(!open_.empty(), "every close() has its open()");
  fmt::format_to(std::back_inserter(text_), "</{}>\n", open_.back());
  open_.pop_back();
}

}  // namespace assay::plot
