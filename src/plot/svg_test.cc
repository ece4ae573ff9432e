#include "plot/svg.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/text.h"
#include "plot/testing/xml.h"

namespace assay::plot {
namespace {

using testing::parse_xml;

TEST(Svg, EscapesWhatXmlMeansSomethingBy) {
  EXPECT_EQ(xml_escaped("<&> \"x\" 'y'"), "&lt;&amp;&gt; &quot;x&quot; 'y'");
  EXPECT_EQ(xml_escaped("a\x01\xFF"), "a\\x01\\xff");
  EXPECT_EQ(xml_escaped("\xEF\xBF\xBE|\xEF\xBF\xBF|µ"), "\xEF\xBF\xBD|\xEF\xBF\xBD|µ");
}

TEST(Svg, CoordinatesAreShort) {
  EXPECT_EQ(coordinate(12), "12");
  EXPECT_EQ(coordinate(12.5), "12.5");
  EXPECT_EQ(coordinate(100), "100");
  EXPECT_EQ(coordinate(0.129), "0.13");
  EXPECT_EQ(coordinate(-0.001), "0");
}

TEST(Svg, ElementsNest) {
  Svg svg;
  svg.open("g", {{"class", "a\"b"}});
  svg.element("rect", {{"x", 1}, {"y", 2.5}});
  svg.element("title", {}, "<");
  svg.close();
  EXPECT_EQ(svg.text(),
            "<g class=\"a&quot;b\">\n<rect x=\"1\" y=\"2.5\"/>\n<title>&lt;</title>\n</g>\n");
}

// The reader that the other tests rely on refuses what is not XML.
TEST(XmlReader, RefusesWhatIsNotWellFormed) {
  EXPECT_TRUE(parse_xml("<a b=\"c\"><d/>&lt;</a>\n"));
  for (const char* broken :
       {"", "<a>", "<a></b>", "<a/><b/>", "<a b=c/>", "<a b=\"c/>", "<a b=\"1\" b=\"2\"/>",
        "<a>&</a>", "<a>&nbsp;</a>", "<a>\x01</a>", "<a>\xFF</a>", "<a b=\"<\"/>", "text<a/>",
        "</a>", "<a", "<a>\xEF\xBF\xBE</a>"}) {
    EXPECT_FALSE(parse_xml(broken)) << broken;
  }
}

RC_GTEST_PROP(SvgProperty, AnyTextComesBack, (const std::string& text)) {
  Svg svg;
  svg.element("text", {{"class", text}}, text);
  const auto elements = parse_xml(svg.text());
  RC_ASSERT(elements.has_value());
  RC_ASSERT(elements->front().text == base::printable(text));
  RC_ASSERT(elements->front().attributes.at("class") == base::printable(text));
}

}  // namespace
}  // namespace assay::plot
