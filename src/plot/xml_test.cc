#include "plot/xml.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <tuple>

#include "base/text.h"
#include "plot/testing/xml.h"

namespace assay::plot {
namespace {

using testing::parse_xml;

std::string escaped(std::string_view text) {
  XmlWriter xml;
  xml.element("a", {}, text);
  return xml.text().substr(3, xml.text().size() - 8);
}

TEST(XmlWriter, EscapesMarkupAndWhatXmlCannotHold) {
  EXPECT_EQ(escaped("<&> \"x\" 'y'"), "&lt;&amp;&gt; &quot;x&quot; 'y'");
  EXPECT_EQ(escaped("a\x01\xFF"), "a\\x01\\xff");
  EXPECT_EQ(escaped("\xEF\xBF\xBE|\xEF\xBF\xBF|µ"), "\xEF\xBF\xBD|\xEF\xBF\xBD|µ");
  EXPECT_EQ(escaped("a\nb"), "a\\x0ab");
}

TEST(XmlWriter, CoordinatesAreShort) {
  EXPECT_EQ(coordinate(12), "12");
  EXPECT_EQ(coordinate(12.5), "12.5");
  EXPECT_EQ(coordinate(100), "100");
  EXPECT_EQ(coordinate(0.129), "0.13");
  EXPECT_EQ(coordinate(-0.001), "0");
}

TEST(XmlWriter, ElementsNest) {
  XmlWriter inner;
  inner.element("title", {}, "<");
  XmlWriter xml;
  xml.open("g", {{"class", "a\"b"}});
  xml.element("rect", {{"x", 1}, {"y", 2.5}});
  xml.append(inner);
  xml.close();
  EXPECT_EQ(xml.text(),
            "<g class=\"a&quot;b\">\n<rect x=\"1\" y=\"2.5\"/>\n<title>&lt;</title>\n</g>\n");
}

TEST(XmlWriter, KeepsLinesAndVerbatimTextOnRequest) {
  XmlWriter xml;
  xml.multiline_element("title", {}, "a<\n\nb\x01\n");
  xml.verbatim_element("style", {}, "a > b {}");
  EXPECT_EQ(xml.text(), "<title>a&lt;\n\nb\\x01\n</title>\n<style>a > b {}</style>\n");
}

TEST(XmlWriterDeathTest, RefusesUnbalancedElements) {
  XmlWriter xml;
  EXPECT_DEATH(xml.close(), "every close");
  xml.open("g", {});
  EXPECT_DEATH(std::ignore = xml.text(), "every open");
  EXPECT_DEATH(xml.verbatim_element("style", {}, "</style>"), "verbatim");
}

// The reader that other tests rely on.
TEST(XmlReader, RefusesWhatIsNotWellFormed) {
  EXPECT_TRUE(parse_xml("<a b=\"c\"><d/>&lt;</a>\n"));
  for (const char* broken :
       {"", "<a>", "<a></b>", "<a/><b/>", "<a b=c/>", "<a b=\"c/>", "<a b=\"1\" b=\"2\"/>",
        "<a>&</a>", "<a>&nbsp;</a>", "<a>\x01</a>", "<a>\xFF</a>", "<a b=\"<\"/>", "text<a/>",
        "</a>", "<a", "<a>\xEF\xBF\xBE</a>"}) {
    EXPECT_FALSE(parse_xml(broken)) << broken;
  }
}

RC_GTEST_PROP(XmlWriterProperty, AnyTextComesBack, (const std::string& text)) {
  XmlWriter xml;
  xml.element("text", {{"class", text}}, text);
  const auto elements = parse_xml(xml.text());
  RC_ASSERT(elements.has_value());
  RC_ASSERT(elements->front().text == base::printable(text));
  RC_ASSERT(elements->front().attributes.at("class") == base::printable(text));
}

}  // namespace
}  // namespace assay::plot
