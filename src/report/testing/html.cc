#include "report/testing/html.h"

#include <gtest/gtest.h>

#include <set>

namespace assay::report::testing {
namespace {

using plot::testing::Element;

// Takes the text out of elements whose text is not markup, as browsers see it: up to the first end
// tag, whatever it was meant to be.
std::vector<std::string> take_raw(std::string& document, const std::string& name) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; (at = document.find("<" + name, at)) != std::string::npos;) {
    const std::size_t begin = document.find('>', at) + 1;
    const std::size_t end = document.find("</" + name, begin);
    if (end == std::string::npos) {
      ADD_FAILURE() << name << " has no end";
      break;
    }
    texts.push_back(document.substr(begin, end - begin));
    document.erase(begin, end - begin);
    at = begin;
  }
  return texts;
}

const std::set<std::string> kElements = {
    "html",   "head",       "meta",    "title",   "link",    "style",  "script",  "body",
    "header", "nav",        "main",    "article", "section", "footer", "h1",      "h2",
    "h3",     "p",          "a",       "ol",      "li",      "dl",     "div",     "dt",
    "dd",     "table",      "caption", "thead",   "tbody",   "tr",     "th",      "td",
    "figure", "figcaption", "details", "summary", "code",    "strong", "span",    "svg",
    "desc",   "g",          "path",    "line",    "rect",    "circle", "polygon", "text"};
const std::set<std::string> kVoid = {"meta", "link"};
const std::set<std::string> kDrawn = {"path", "line", "rect", "circle", "polygon"};

void check_links(const std::vector<Element>& elements) {
  std::set<std::string> ids;
  for (const Element& element : elements) {
    const auto id = element.attributes.find("id");
    if (id == element.attributes.end()) continue;
    EXPECT_TRUE(ids.insert(id->second).second) << "twice: " << id->second;
  }
  for (const Element& element : elements) {
    for (const auto& [name, value] : element.attributes) {
      EXPECT_FALSE(name.starts_with("on")) << name;
      EXPECT_NE(name, "style");
      EXPECT_NE(name, "src");
      if (name == "aria-labelledby") {
        EXPECT_TRUE(ids.contains(value)) << value;
      }
      if (name != "href") continue;
      if (element.name == "link") {
        EXPECT_EQ(value, "data:,");
      } else {
        ASSERT_TRUE(value.starts_with("#")) << value;
        EXPECT_TRUE(ids.contains(value.substr(1))) << value;
      }
    }
  }
}

}  // namespace

HtmlPage read_html(std::string_view document) {
  constexpr std::string_view kDoctype = "<!DOCTYPE html>\n";
  HtmlPage page;
  EXPECT_TRUE(document.starts_with(kDoctype));
  std::string rest(document.substr(kDoctype.size()));
  const std::vector<std::string> styles = take_raw(rest, "style");
  EXPECT_EQ(styles.size(), 1U);
  if (!styles.empty()) page.style = styles.front();
  const std::vector<std::string> scripts = take_raw(rest, "script");
  // A browser treats <br/> and <br></br> differently: only void elements have no end tag.
  for (std::size_t at = 0; (at = rest.find("/>", at)) != std::string::npos; ++at) {
    const std::size_t open = rest.rfind('<', at);
    const std::string name = rest.substr(open + 1, rest.find_first_of(" /", open + 1) - open - 1);
    EXPECT_TRUE(kVoid.contains(name) || kDrawn.contains(name)) << name;
  }
  const auto elements = plot::testing::parse_xml(rest);
  EXPECT_TRUE(elements.has_value());
  if (!elements) return page;
  page.elements = *elements;
  std::size_t script = 0;
  for (const Element& element : page.elements) {
    EXPECT_TRUE(kElements.contains(element.name)) << element.name;
    if (element.name == "script" && script < scripts.size()) {
      (element.attributes.contains("type") ? page.data : page.scripts).push_back(scripts[script++]);
    }
    if (element.name == "meta" && element.attributes.contains("http-equiv")) {
      page.policy = element.attributes.at("content");
    }
  }
  check_links(page.elements);
  return page;
}

}  // namespace assay::report::testing
