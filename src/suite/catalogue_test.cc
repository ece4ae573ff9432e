// The suites that come with the program: what they say was published or recorded stands where they
// say it does.
#include "suite/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/csv.h"
#include "base/text.h"
#include "suite/outcome.h"

namespace assay::suite {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string source_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(std::string(ASSAY_SOURCE_DIR) + "/" + path).rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

// Calls visit(suite, table, figure) for each.
template <class Visit>
void each_figure(const Visit& visit) {
  for (const std::string& name : suite_names()) {
    const auto suite = find_suite(name);
    ASSERT_TRUE(suite.has_value()) << suite.error().line();
    for (const FigureTable& table : suite->tables) {
      for (const Figure& figure : table.figures) visit(*suite, table, figure);
    }
  }
}

TEST(Catalogue, TheSuitesAndTheirNames) {
  EXPECT_THAT(suite_names(), ElementsAre("interconnect", "mfu-scaling", "slow-down", "survival",
                                         "tracer-overhead"));
  const auto near = find_suite("survivel");
  ASSERT_FALSE(near.has_value());
  EXPECT_EQ(near.error().line(), "bench: unknown suite 'survivel'; did you mean 'survival'?");
  EXPECT_FALSE(find_suite("no/such.toml").has_value());
}

TEST(Catalogue, EveryPublishedFigureStandsInTheDocumentation) {
  const std::string page = source_file("docs/bench.md");
  int published = 0;
  each_figure([&](const Suite& suite, const FigureTable& table, const Figure& figure) {
    if (!figure.published && figure.published_as.empty()) return;
    ++published;
    EXPECT_THAT(page, HasSubstr("| " + figure.what + " | " + published_text(table, figure) + " |"))
        << suite.name;
  });
  EXPECT_GT(published, 70);
}

TEST(Catalogue, EveryRecordedFigureStandsAmongTheResultsWithItsCommit) {
  std::string results;
  for (const char* page : {"train", "gpu", "checkpoint", "trace"}) {
    results += source_file(std::string("bench/results/") + page + ".md");
  }
  int recorded = 0;
  each_figure([&](const Suite& suite, const FigureTable&, const Figure& figure) {
    if (!figure.recorded) return;
    ++recorded;
    std::istringstream commits(figure.recorded->commit);
    for (std::string commit; std::getline(commits >> std::ws, commit, ',');) {
      EXPECT_THAT(results, HasSubstr(commit)) << suite.name << ": " << figure.what;
    }
    EXPECT_THAT(results, HasSubstr(figure.recorded->date));
    // As results write it: 12,763; 58.8 %; −0.08 %; 18.7 tokens per joule are 18,700 per kJ.
    const double value = figure.recorded->value;
    std::string text = value >= 1000 ? base::grouped(static_cast<std::int64_t>(value))
                                     : fmt::format("{}", std::abs(value));
    if (text == "18,700") text = "18.7 tokens per joule";
    EXPECT_THAT(results, HasSubstr(text)) << suite.name << ": " << figure.what;
  });
  EXPECT_GE(recorded, 8);
}

TEST(Catalogue, TheRowsOfMfuScalingAreThePublishedOnes) {
  const auto suite = find_suite("mfu-scaling");
  ASSERT_TRUE(suite.has_value());
  const auto rows_of = [](const std::string& text) {
    std::vector<std::map<std::string, std::string>> rows;
    std::istringstream lines(text);
    std::vector<std::string> names;
    for (std::string line; std::getline(lines, line);) {
      std::vector<std::string> cells;
      std::istringstream fields(line);
      for (std::string cell; std::getline(fields, cell, ',');) cells.push_back(cell);
      if (names.empty()) {
        names = cells;
        continue;
      }
      std::map<std::string, std::string> row;
      for (std::size_t i = 0; i < std::min(names.size(), cells.size()); ++i)
        row[names[i]] = cells[i];
      rows.push_back(std::move(row));
    }
    return rows;
  };
  std::vector<std::map<std::string, std::string>> theirs;
  for (auto& row : rows_of(source_file("tests/data/plan/training_rows.csv"))) {
    if (row["source"].find("mfu_scaling.md") != std::string::npos) theirs.push_back(row);
  }
  auto ours = rows_of(suite->step("rows")->text);
  ASSERT_EQ(theirs.size(), 14U);
  ASSERT_EQ(ours.size(), 14U);
  const std::vector<Figure>& mfu = suite->tables[0].figures;
  ASSERT_EQ(mfu.size(), 14U);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    for (const auto& [key, value] : ours[i]) {
      if (key == "id" || key == "source") continue;
      EXPECT_EQ(value, theirs[i][key]) << i << " " << key;
    }
    EXPECT_EQ(*mfu[i].published, std::stod(theirs[i]["mfu_pct"]));
    // Their own step gives their own MFU, to the rounding of the step.
    EXPECT_NEAR(*mfu[i].planned->over / std::stod(theirs[i]["step_s"]), *mfu[i].published,
                0.006 * *mfu[i].published);
  }
}

TEST(Catalogue, EverySuiteHasSomethingForAQuickRun) {
  for (const std::string& name : suite_names()) {
    const auto suite = find_suite(name);
    ASSERT_TRUE(suite.has_value());
    const auto quick = std::count_if(suite->steps.begin(), suite->steps.end(),
                                     [](const Step& step) { return step.quick; });
    EXPECT_GT(quick, 0) << name;
    EXPECT_FALSE(suite->reproduces.empty()) << name;
  }
}

}  // namespace
}  // namespace assay::suite
