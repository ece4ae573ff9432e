// Traces and live values, read back by what their formats promise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "report/run_exports.h"
#include "report/testing/sample_run.h"

namespace assay::report {
namespace {

using base::Json;
using testing::hostile_run;
using testing::sample_run;

// The rules of Chrome's trace format, as far as they are used here.
std::map<std::string, std::vector<Json>> events_by_kind(const std::string& text) {
  const Json trace = Json::parse(text, nullptr, false);
  EXPECT_TRUE(trace.is_object());
  std::map<std::string, std::vector<Json>> events;
  for (const Json& event : trace.at("traceEvents")) {
    const std::string kind = event.at("ph");
    EXPECT_TRUE(event.at("name").is_string());
    EXPECT_EQ(event.at("pid"), 1);
    if (kind != "M") {
      EXPECT_GE(event.at("ts").get<double>(), 0);
    }
    if (kind == "X") {
      EXPECT_GE(event.at("dur").get<double>(), 0);
    }
    if (kind == "X" || kind == "i") {
      EXPECT_TRUE(event.at("tid").is_number_integer());
    }
    if (kind == "C") {
      EXPECT_TRUE(event.at("args").at("value").is_number());
    }
    events[kind].push_back(event);
  }
  return events;
}

TEST(Perfetto, StepsAreSlicesAndMetricsCounters) {
  const ReportedRun run = sample_run(50);
  auto events = events_by_kind(perfetto(run));
  std::vector<Json> steps;
  std::map<std::string, std::size_t> slices;
  for (const Json& event : events["X"]) {
    const std::string name = event.at("name");
    if (name.starts_with("step ")) steps.push_back(event);
    ++slices[name];
  }
  ASSERT_EQ(steps.size(), 50U);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double took = *series_of(run, "seconds")->points[i].value;
    EXPECT_NEAR(steps[i].at("dur").get<double>(), took * 1e6, 1);
    const double end = steps[i].at("ts").get<double>() + steps[i].at("dur").get<double>();
    EXPECT_NEAR(end, (*series_of(run, "unix_s")->points[i].value - 1'790'000'000) * 1e6, 1);
    if (i > 0) {
      EXPECT_GE(steps[i].at("ts"), steps[i - 1].at("ts"));
    }
  }
  EXPECT_EQ(slices["start-up"], 1U);
  EXPECT_EQ(slices["done"], 1U);
  EXPECT_EQ(slices["/bin/assay-train"], 1U);
  EXPECT_EQ(events["i"].size(), 2U);  // checkpoints
  std::map<std::string, std::size_t> counters;
  for (const Json& event : events["C"]) ++counters[event.at("name")];
  EXPECT_EQ(counters["watts"], 50U);
  EXPECT_EQ(counters["loss"], 49U);  // one was not finite
  EXPECT_GE(events["M"].size(), 4U);
}

TEST(Perfetto, HostileNamesAndRunsWithoutSteps) {
  for (const std::string& bytes :
       {std::string("\"},{\"ph\":\"X\""), std::string("\xff\x01\n\\"), std::string()}) {
    ReportedRun run = hostile_run(bytes);
    const std::size_t all = events_by_kind(perfetto(run)).size();
    EXPECT_GE(all, 3U);
    run.metrics.clear();
    EXPECT_EQ(events_by_kind(perfetto(run))["C"].size(), 0U);
  }
}

// Every line of the exposition format, and nothing else.
std::map<std::string, double> gauges_in(const std::string& text) {
  static const std::regex kComment("# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)");
  static const std::regex kSample(
      "([a-zA-Z_:][a-zA-Z0-9_:]*)\\{((?:[a-z]+=\"(?:[^\"\\\\]|\\\\[\\\\\"n])*\",?)+)\\} (\\S+)");
  std::map<std::string, double> values;
  std::set<std::string> typed;
  EXPECT_TRUE(text.ends_with('\n'));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kComment)) {
      if (match[1] == "TYPE") {
        EXPECT_TRUE(typed.insert(match[2]).second) << line;
      }
    } else if (std::regex_match(line, match, kSample)) {
      EXPECT_TRUE(typed.contains(match[1])) << line;
      EXPECT_TRUE(values.emplace(match[1].str() + "{" + match[2].str(), std::stod(match[3])).second)
          << line;
    } else {
      ADD_FAILURE() << line;
    }
  }
  return values;
}

TEST(Prometheus, HasTheLatestValueOfEveryQuantity) {
  const ReportedRun run = sample_run(50);
  const auto values = gauges_in(prometheus(run));
  const std::string labels = "{run=\"12\",uid=\"0123456789abcdef\",name=\"demo\"";
  for (const char* name : {"loss", "tokens_per_s", "watts", "memory_bytes"}) {
    const auto found = values.find("assay_run_" + std::string(name) + labels + ",process=\"1\"");
    ASSERT_NE(found, values.end()) << name;
    EXPECT_DOUBLE_EQ(found->second, *series_of(run, name)->points.back().value);
  }
  EXPECT_EQ(values.at("assay_run_step" + labels + ",process=\"1\""), 50);
  EXPECT_EQ(values.at("assay_run_up" + labels), 0);
}

TEST(Prometheus, HostileNamesStayInTheirPlaces) {
  for (const std::string& bytes : {std::string("a\"} 1\nb{x=\""), std::string("\xff\\"),
                                   std::string("up"), std::string("step")}) {
    gauges_in(prometheus(hostile_run(bytes)));
  }
  ReportedRun twice = sample_run(5);
  twice.metrics.push_back({1, "tokens per s", "", {{1, 2.0}}});  // the same name when cleaned
  gauges_in(prometheus(twice));
}

}  // namespace
}  // namespace assay::report
