// Pages, read back strictly: everything is there, text from outside never becomes markup, nothing
// is loaded, no secret is shown.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "base/statistics.h"
#include "plot/flow.h"
#include "plot/style.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/run_part.h"
#include "report/testing/html.h"
#include "report/testing/sample_run.h"

namespace assay::report {
namespace {

using base::Json;
using plot::testing::Element;
using ::testing::HasSubstr;
using testing::hostile_run;
using testing::HtmlPage;
using ::testing::Not;
using testing::read_html;
using testing::sample_run;

Page page_of(const ReportedRun& run) {
  return {.title = run.record.name,
          .made_unix_ns = 1'790'000'000'000'000'000,
          .parts = {run_part(run)}};
}

std::set<std::string> charts_of(const HtmlPage& page) {
  std::set<std::string> names;
  for (const Element& element : page.elements) {
    const auto name = element.attributes.find("data-chart");
    if (name != element.attributes.end()) names.insert(name->second);
  }
  return names;
}

std::size_t count(const HtmlPage& page, std::string_view name) {
  return static_cast<std::size_t>(
      std::count_if(page.elements.begin(), page.elements.end(),
                    [&](const Element& element) { return element.name == name; }));
}

TEST(Html, HasEveryChartAndLandmark) {
  const HtmlPage page = read_html(html(page_of(sample_run(300))));
  EXPECT_THAT(charts_of(page),
              ::testing::IsSupersetOf({"step-times", "loss", "throughput", "mfu", "memory", "power",
                                       "time-breakdown", "timeline", "step-breakdown", "lineage"}));
  EXPECT_EQ(2 * count(page, "figure"), count(page, "svg"));  // wide and narrow
  for (const char* landmark : {"main", "nav", "h1", "footer"}) {
    EXPECT_EQ(count(page, landmark), 1U) << landmark;
  }
  EXPECT_EQ(count(page, "table"), count(page, "caption"));
  for (const Element& element : page.elements) {
    if (element.name == "th") {
      EXPECT_TRUE(element.attributes.contains("scope"));
      EXPECT_NE(element.text, "") << "a heading without text";
    }
    if (element.name == "svg") {
      EXPECT_EQ(element.attributes.at("role"), "img");
    }
    if (element.has_class("scroll")) {
      EXPECT_EQ(element.attributes.at("tabindex"), "0");
    }
  }
}

TEST(Html, ACaptionThatRepeatsItsHeadingIsShownOnce) {
  PagePart part{.kind = "k", .title = "t"};
  add_section(part, {"Goals", {PageTable{"Goals", {"a"}, {{Cell("x")}}}}});
  add_section(part, {"More", {PageTable{"Other", {"a"}, {{Cell("x")}}}}});
  const Page page{.title = "t", .parts = {part}};
  EXPECT_THAT(html(page), HasSubstr("<caption class=\"same\">Goals</caption>"));
  EXPECT_THAT(html(page), Not(HasSubstr("<caption class=\"same\">Other")));
  EXPECT_THAT(markdown(page), Not(HasSubstr("**Goals**")));
  EXPECT_THAT(markdown(page), HasSubstr("**Other**"));
}

TEST(Html, NumbersAndVerdictsAreKeptWhole) {
  PagePart part{.kind = "k", .title = "t"};
  PageTable table{"T", {"what", "ours", "verdict", "remark"}};
  table.rows = {
      {Cell("a"), Cell("+8.31 [-62.50, +70.1]", 8.31), Cell("NOT JUDGED", {}, Rating::kOpen),
       Cell("a sentence that is longer than a line of a table may be")},
      {Cell("b"), Cell("one run"), Cell("PASS", {}, Rating::kGood), Cell("")}};
  add_section(part, {"S", {table}});
  const std::string text = html({.title = "t", .parts = {part}});
  EXPECT_THAT(text, HasSubstr("<td class=\"n\" data-n=\"8.31\">"));
  EXPECT_THAT(text, HasSubstr("<td class=\"n\">one run</td>"));
  EXPECT_THAT(text, HasSubstr("<th scope=\"col\" class=\"t\">remark</th>"));
}

TEST(Html, ThePolicyLetsNothingElseIn) {
  const HtmlPage page = read_html(html(page_of(sample_run(10))));
  ASSERT_EQ(page.scripts.size(), 1U);
  EXPECT_EQ(page.policy, "default-src 'none'; style-src '" + policy_hash(page.style) +
                             "'; script-src '" + policy_hash(page.scripts[0]) +
                             "'; img-src data:; base-uri 'none'; form-action 'none'");
  EXPECT_THAT(page.style, HasSubstr(plot::style_sheet()));
  EXPECT_THAT(page.style, Not(HasSubstr("url(")));
  EXPECT_THAT(page.scripts[0], Not(HasSubstr("eval")));
  EXPECT_THAT(page.scripts[0], Not(HasSubstr("innerHTML")));
}

TEST(Html, PolicyHashesArePublishedVectors) {
  EXPECT_EQ(policy_hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
  EXPECT_EQ(policy_hash("abc"), "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  EXPECT_EQ(policy_hash(std::string(1'000'000, 'a')),
            "sha256-zcduXJkU+5KBocfihNc+Z/GAmkiklyAOBG05zMcRLNA=");
}

TEST(Html, SeveralPartsBeginWithAnOverview) {
  PagePart one{.kind = "run", .title = "make all", .verdict = {Rating::kGood, "done", "after 3 s"}};
  PagePart two{
      .kind = "experiment", .title = "b against a", .verdict = {Rating::kBad, "FAIL", "9 %"}};
  const Page page{.title = title_of({one, two, two}), .parts = {one, two, two}};
  EXPECT_EQ(page.title, "1 run and 2 experiments");
  const std::string text = html(page);
  read_html(text);
  const std::size_t overview = text.find("id=\"overview\"");
  ASSERT_NE(overview, std::string::npos);
  EXPECT_LT(overview, text.find("<article"));
  EXPECT_THAT(text, HasSubstr("<a href=\"#part-1\">make all</a>"));
  EXPECT_THAT(markdown(page), HasSubstr("| b against a | FAIL | 9 % | experiment |"));
  EXPECT_THAT(html({.title = "t", .parts = {one}}), Not(HasSubstr("id=\"overview\"")));
}

TEST(Html, ShowsMeasuredFigures) {
  const ReportedRun run = sample_run(300);
  const std::string text = html(page_of(run));
  EXPECT_THAT(text, HasSubstr(">300</dd>"));
  EXPECT_THAT(text, HasSubstr("NVIDIA H200"));
  EXPECT_THAT(text, HasSubstr("580.65.06"));
  EXPECT_THAT(text, HasSubstr("c0ffee00"));
  EXPECT_THAT(text, HasSubstr("$3.50 per hour"));
  EXPECT_THAT(text, HasSubstr("380 g/kWh"));
  EXPECT_THAT(text, HasSubstr("123,456"));
  EXPECT_THAT(text, HasSubstr("2.50 TFLOP"));
  // 310 J per second of step, and 380 g per kWh of it.
  double joules = 0;
  for (const auto& point : series_of(run, "joules")->points) joules += *point.value;
  EXPECT_THAT(text, HasSubstr(fmt::format("{:.4g} g CO2", joules / 3.6e6 * 380)));
}

TEST(Html, UnknownValuesAreMarkedAsUnknown) {
  ReportedRun run = sample_run(10);
  run.rates = {};
  run.predicted.reset();
  run.not_predicted = "the device is a CPU";
  std::erase_if(run.metrics, [](const auto& series) { return series.name == "joules"; });
  const std::string text = html(page_of(run));
  EXPECT_THAT(text, HasSubstr("no price was given"));
  EXPECT_THAT(text, HasSubstr("There is no prediction: the device is a CPU"));
  EXPECT_THAT(text, HasSubstr("measured no power"));
  EXPECT_THAT(text, Not(HasSubstr("g CO2</td>")));
}

TEST(Html, KeepsSecretsInTheStore) {
  for (const std::string& text : {html(page_of(sample_run(10))), markdown(page_of(sample_run(10))),
                                  base::json_text(json(page_of(sample_run(10))))}) {
    for (const char* secret : {"SECRET", "do not tell", "token@"}) {
      EXPECT_THAT(text, Not(HasSubstr(secret)));
    }
  }
}

TEST(Html, ARunThatMeasuredNothingHasAPageToo) {
  ReportedRun run = sample_run(10);
  run.metrics.clear();
  run.lineage = {};
  run.record.outputs.clear();
  run.record.context.machine = nullptr;
  run.record.context.git.reset();
  const std::string text = html(page_of(run));
  read_html(text);
  EXPECT_THAT(text, HasSubstr("recorded no metrics"));
}

TEST(Html, HostileTextStaysText) {
  const std::size_t usual = read_html(html(page_of(hostile_run("x")))).elements.size();
  for (const std::string& bytes : std::vector<std::string>{
           "<script>alert(1)</script>", "</script><script>alert(1)</script>", "</style><b>",
           "<!-- <script> ", "]]>", "\" onmouseover=\"alert(1)", "' x='", "&lt;&amp;&#x3c;",
           std::string("\0\x01\x1b[31m\x7f", 8), "\xff\xfe\xc0\xaf", "\xe2\x80\xae rtl",
           "\xef\xbf\xbe", "javascript:alert(1)", std::string(3000, 'W')}) {
    const std::string text = html(page_of(hostile_run(bytes)));
    const HtmlPage page = read_html(text);
    EXPECT_EQ(page.elements.size(), usual) << bytes;
    ASSERT_EQ(page.data.size(), 1U);
    const Json data = Json::parse(page.data[0], nullptr, false);
    EXPECT_TRUE(data.is_object()) << bytes;
    EXPECT_EQ(page.data[0].find('<'), std::string::npos);
    ASSERT_EQ(page.scripts.size(), 1U);
  }
}

// A page with a block of every kind.
Page page_with(const std::string& bytes) {
  const plot::Flow flow{.heading = {bytes, bytes}, .left = {{bytes, bytes}}, .middle = {bytes}};
  PagePart part{.kind = bytes,
                .title = bytes,
                .subtitle = bytes,
                .verdict = {Rating::kOpen, bytes, bytes},
                .sections = {},
                .data = {{bytes, bytes}}};
  add_section(part, {bytes,
                     {Note{bytes}, Facts{{{bytes, bytes, bytes}}},
                      PageTable{bytes, {bytes, bytes}, {{Cell(bytes), Cell(bytes, 1.0)}}},
                      drawn_chart(bytes, bytes, flow, bytes)}});
  return {.title = bytes, .made_unix_ns = 0, .parts = {part, part}};
}

RC_GTEST_PROP(HtmlProperty, AnyBytesGiveTheSameElements, ()) {
  const auto any = *rc::gen::container<std::string>(rc::gen::weightedOneOf<char>(
      {{3, rc::gen::arbitrary<char>()},
       {2, rc::gen::element('<', '>', '/', '&', '"', '\'', '-', '!')}}));
  // Where a text is empty, what it names may be left out.
  static const std::size_t usual = read_html(html(page_with("x"))).elements.size();
  const HtmlPage page = read_html(html(page_with("x" + any)));
  RC_ASSERT(page.elements.size() == usual);
  RC_ASSERT(Json::parse(page.data.at(0), nullptr, false).is_object());
}

TEST(RunSummary, QuantilesAreThoseOfSortedValues) {
  for (const std::int64_t steps : {1, 2, 3, 10, 99, 1000}) {
    const ReportedRun run = sample_run(steps);
    std::vector<double> sorted;
    for (const auto& point : series_of(run, "watts")->points) sorted.push_back(*point.value);
    std::sort(sorted.begin(), sorted.end());
    const auto summary = summary_of(series_of(run, "watts"));
    EXPECT_EQ(summary->least, sorted.front());
    EXPECT_EQ(summary->most, sorted.back());
    EXPECT_EQ(summary->median, base::median(sorted));
    EXPECT_EQ(summary->p90, base::quantile_of_sorted(sorted, 0.9));
    EXPECT_EQ(summary->p99, base::quantile_of_sorted(sorted, 0.99));
  }
}

TEST(Html, AHundredThousandStepsStaySmallAndKeepExtremes) {
  ReportedRun run = sample_run(100'000);
  run.metrics[2].points[61'803].value = 77;  // seconds
  const std::string text = html(page_of(run));
  EXPECT_LT(text.size(), 3'000'000U);
  const Json data = Json::parse(read_html(text).data.at(0));
  for (const Json& series : data.at("metrics")) {
    if (series.at("name") != "seconds") continue;
    EXPECT_EQ(series.at("points"), 100'000);
    EXPECT_LE(series.at("values").size(), kMostEmbedded);
    EXPECT_EQ(*std::max_element(series.at("values").begin(), series.at("values").end()), 77);
  }
  EXPECT_THAT(text, HasSubstr("step 61804"));
}

TEST(Markdown, RowsHaveTheirColumnsWhateverIsInThem) {
  for (const std::string& bytes :
       {std::string("x"), std::string("a|b\n|c`*_<b>[l](javascript:x)\\"),
        std::string("\xff\r\n# h")}) {
    const std::string text = markdown(page_of(hostile_run(bytes)));
    std::istringstream lines(text);
    std::size_t columns = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with('|')) {
        columns = 0;
        continue;
      }
      std::size_t bars = 0;
      for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\\') {
          ++i;
        } else if (line[i] == '|') {
          ++bars;
        }
      }
      if (columns != 0) {
        EXPECT_EQ(bars, columns) << line;
      }
      columns = bars;
    }
    EXPECT_THAT(text, Not(HasSubstr("\n# h")));
    EXPECT_THAT(text, Not(HasSubstr("<b>")));
  }
}

TEST(PageJson, HasSectionsAndEveryPoint) {
  const ReportedRun run = sample_run(3000);
  const Page page{.title = "t", .made_unix_ns = 0, .parts = {run_part(run, 1'000'000)}};
  const Json document = json(page);
  const Json& metrics = document.at("parts").at(0).at("data").at("metrics");
  EXPECT_EQ(metrics.at(2).at("values").size(), 3000U);
  EXPECT_EQ(document.at("parts").at(0).at("sections").size(), page.parts[0].sections.size());
  std::size_t charts = 0;
  for (const Json& section : document.at("parts").at(0).at("sections")) {
    for (const Json& block : section.at("blocks")) {
      if (!block.contains("chart")) continue;
      ++charts;
      EXPECT_NE(block.at("description"), "") << block.dump();
    }
  }
  EXPECT_GT(charts, 0U);
}

}  // namespace
}  // namespace assay::report
