#include "plot/testing/xml.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/utf8.h"

namespace assay::plot::testing {
namespace {

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
}

std::optional<std::string> decoded(std::string_view text) {
  static const std::map<std::string_view, char> entities = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}};
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') return std::nullopt;
    if (text[i] != '&') {
      plain += text[i];
      continue;
    }
    const std::size_t end = text.find(';', i);
    if (end == std::string_view::npos) return std::nullopt;
    const auto entity = entities.find(text.substr(i, end - i + 1));
    if (entity == entities.end()) return std::nullopt;
    plain += entity->second;
    i = end;
  }
  return plain;
}

// What is between < and > or />, without them.
std::optional<Element> parse_tag(std::string_view tag) {
  Element element;
  std::size_t at = std::min(tag.find(' '), tag.size());
  element.name = tag.substr(0, at);
  if (!is_name(element.name)) return std::nullopt;
  while (at < tag.size()) {
    const std::size_t equals = tag.find("=\"", at);
    if (tag[at] != ' ' || equals == std::string_view::npos) return std::nullopt;
    const std::string name(tag.substr(at + 1, equals - at - 1));
    const std::size_t end = tag.find('"', equals + 2);
    if (!is_name(name) || end == std::string_view::npos) return std::nullopt;
    const auto value = decoded(tag.substr(equals + 2, end - equals - 2));
    if (!value || !element.attributes.emplace(name, *value).second) return std::nullopt;
    at = end + 1;
  }
  return element;
}

bool has_only_xml_characters(std::string_view text) {
  while (!text.empty()) {
    const base::Utf8Char c = base::first_utf8_char(text);
    const bool control = c.code_point < 0x20 && c.code_point != U'\n';
    if (!c.valid || control || c.code_point == 0xFFFE || c.code_point == 0xFFFF) return false;
    text.remove_prefix(c.size);
  }
  return true;
}

}  // namespace

bool Element::has_class(std::string_view wanted) const {
  const auto classes = attributes.find("class");
  if (classes == attributes.end()) return false;
  std::istringstream words(classes->second);
  for (std::string word; words >> word;) {
    if (word == wanted) return true;
  }
  return false;
}

double Element::number(const std::string& attribute) const {
  const auto found = attributes.find(attribute);
  const std::string held = found == attributes.end() ? "" : found->second;
  char* end = nullptr;
  const double value = std::strtod(held.c_str(), &end);
  EXPECT_TRUE(!held.empty() && *end == '\0' && std::isfinite(value))
      << name << " has " << attribute << "='" << held << "'";
  return value;
}

std::optional<std::vector<Element>> parse_xml(std::string_view document) {
  if (!has_only_xml_characters(document)) return std::nullopt;
  std::vector<Element> elements;
  std::vector<std::size_t> open;
  std::size_t at = 0;
  while (at < document.size()) {
    const std::size_t tag = std::min(document.find('<', at), document.size());
    const auto text = decoded(document.substr(at, tag - at));
    if (!text) return std::nullopt;
    if (!open.empty()) {
      elements[open.back()].text += *text;
    } else if (text->find_first_not_of('\n') != std::string::npos) {
      return std::nullopt;
    }
    if (tag == document.size()) break;
    const std::size_t end = document.find('>', tag);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view inside = document.substr(tag + 1, end - tag - 1);
    at = end + 1;
    if (inside.starts_with('/')) {
      if (open.empty() || elements[open.back()].name != inside.substr(1)) return std::nullopt;
      open.pop_back();
      continue;
    }
    const bool empty = inside.ends_with('/');
    if (empty) inside.remove_suffix(1);
    auto element = parse_tag(inside);
    if (!element || (open.empty() && !elements.empty())) return std::nullopt;  // one root
    for (const std::size_t parent : open) element->parents.push_back(elements[parent].name);
    if (!empty) open.push_back(elements.size());
    elements.push_back(std::move(*element));
  }
  if (!open.empty() || elements.empty()) return std::nullopt;
  return elements;
}

std::vector<Element> elements_of(std::string_view drawing) {
  auto elements = parse_xml(drawing);
  EXPECT_TRUE(elements.has_value()) << drawing.substr(0, 4000);
  return elements ? *elements : std::vector<Element>{};
}

std::vector<Element> elements_of(const Drawing& drawing) {
  return elements_of(drawing.svg());
}

std::vector<Element> those(const std::vector<Element>& elements, std::string_view name,
                           std::string_view class_name) {
  std::vector<Element> found;
  for (const Element& element : elements) {
    if (element.name == name && (class_name.empty() || element.has_class(class_name))) {
      found.push_back(element);
    }
  }
  return found;
}

std::string description_of(const Drawing& drawing) {
  const auto found = those(elements_of(drawing), "desc");
  return found.size() == 1 ? found.front().text : "";
}

}  // namespace assay::plot::testing
