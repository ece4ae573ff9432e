// The suites that come with the program: what they say was published or recorded stands where they
// say it does.
#include "suite/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
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

TEST(Catalogue, EveryPublishedFigureStandsInTheDocumentationUnderItsTable) {
  const std::string page = source_file("docs/bench.md");
  int published = 0;
  each_figure([&](const Suite& suite, const FigureTable& table, const Figure& figure) {
    if (!figure.published && figure.published_as.empty()) return;
    ++published;
    const std::size_t part = page.find("### " + suite.name + "\n");
    const std::string head = fmt::format("| {} | published{}{} |\n", table.title,
                                         table.unit.empty() ? "" : ", ", table.unit);
    const std::size_t begin = page.find(head, part);
    ASSERT_NE(begin, std::string::npos) << suite.name << ": " << head;
    EXPECT_LT(begin, page.find("\n### ", part + 1)) << "in another suite's part: " << head;
    const std::string rows = page.substr(begin, page.find("\n\n", begin) - begin + 1);
    EXPECT_THAT(rows,
                HasSubstr("\n| " + figure.what + " | " + published_text(table, figure) + " |\n"))
        << suite.name;
  });
  EXPECT_GT(published, 70);
}

// Published figures that follow from others, so that a slip in one shows.
TEST(Catalogue, PublishedFiguresAgreeWithEachOtherWhereTheyMust) {
  std::map<std::string, double> by_name;  // "suite/table/figure"
  each_figure([&](const Suite& suite, const FigureTable& table, const Figure& figure) {
    if (figure.published)
      by_name[suite.name + "/" + table.title + "/" + figure.what] = *figure.published;
  });
  const auto at = [&](const std::string& suite, const std::string& table, const std::string& what) {
    const auto found = by_name.find(suite + "/" + table + "/" + what);
    EXPECT_NE(found, by_name.end()) << suite << "/" << table << "/" << what;
    return found == by_name.end() ? 0.0 : found->second;
  };
  // Hours are steps of so many milliseconds, and dollars are hours at a price.
  struct Machine {
    const char* step;
    const char* cost;
    double price;
  };
  for (const Machine& one : {Machine{"SXM (NVSwitch)", "SXM, Vast.ai at $12.85", 12.85},
                             Machine{"PCIe", "PCIe, RunPod at $19.12", 19.12},
                             Machine{"NVL", "NVL, RunPod at $21.52", 21.52}}) {
    const double hours = at("interconnect", "training time, 14,889 steps", one.step);
    EXPECT_NEAR(at("interconnect", "step time", one.step) * 14889 / 3.6e6, hours, 0.006);
    EXPECT_NEAR(hours * one.price,
                at("interconnect", "training cost, at the published prices per hour", one.cost),
                0.01);
  }
  const char* const disk = "checkpoint, as fast as the disk takes and gives it";
  EXPECT_NEAR(at("survival", disk, "save: 28 GB in 8 s (FSx)"), 28.0 / 8, 0.005);
  EXPECT_NEAR(at("survival", disk, "save: 28 GB in 18 s (S3)"), 28.0 / 18, 0.005);
  EXPECT_NEAR(at("survival", disk, "load: 28 GB in 5 s (FSx)"), 28.0 / 5, 0.005);
}

// Where a recorded figure stands: the page, and the very words with the number in them.
struct OnRecord {
  const char* suite;
  const char* table;  // how its title begins
  const char* what;
  const char* page;
  const char* words;
  double value;
  const char* commit_words;  // where the page names the commit that was measured
};

constexpr OnRecord kOnRecord[] = {
    {"mfu-scaling", "MFU", "1 GPU, 7B, one rank", "train",
     "`full` recompute, 4 x 4096 x 2 | **10,636** | 3081 | 55.3 % / 58.8 % |", 58.8,
     "82.7 / 82.7 GiB | f13ead7 |"},
    {"mfu-scaling", "best", "1 GPU, 7B, one rank", "train",
     "`full` recompute, 4 x 4096 x 2 | **10,636** |", 10636, "82.7 / 82.7 GiB | f13ead7 |"},
    {"mfu-scaling", "best", "1 GPU, 7B, recomputing only what is cheap", "train",
     "4 x 4096 x 2, `cheap`, exact fp32 master, random tokens | **12,763** |", 12763,
     "122.6 / 123 GiB | 408e404 |"},
    {"slow-down", "a launch", "bare", "gpu", "| bare | 2.02 | 1.99–2.06 |", 2.02,
     "- commit: 3f879a4\n"},
    {"slow-down", "a launch", "through a library that only jumps", "gpu",
     "| a jump and nothing else | 2.85 | 2.80–2.88 |", 2.85, "- commit: 3f879a4\n"},
    {"slow-down", "a launch", "counting, as under assay run", "gpu",
     "| counting | 2.84 | 2.82–2.87 |", 2.84, "- commit: 3f879a4\n"},
    {"survival", "checkpoint, as", "save: 28 GB in 8 s (FSx)", "train",
     "written (1.8 GB/s, this disk)", 1.8, "on the same card, 0a0e23d:"},
    {"survival", "checkpoint of", "a step while state is copied, of one without", "train",
     "| 7, while state is copied | 2.5620 | 1.0007 |", 1.0007, "on the same card, 0a0e23d:"},
    {"survival", "power", "per GPU (published: A100); here: the processors", "train",
     "While a step runs: 692 W, 1509 MHz,", 692, "f13ead7"},
    {"survival", "work", "7B on A100 (published), 8B on one H200", "train",
     "0.0536 J per token (18.7 tokens per joule) in bf16 on text", 18700, "f13ead7"},
    {"tracer-overhead", "added to a step", "d12 / small, preload", "gpu",
     "Loop: −0.08 %, 95 % interval [−0.29, +0.13];", -0.08,
     "- commit: f480288 (pairs 1 to 3), baa17d5 (pairs 4 to 7)"},
};

TEST(Catalogue, EveryRecordedFigureStandsAmongTheResultsInTheseWords) {
  int recorded = 0;
  each_figure([&](const Suite& suite, const FigureTable& table, const Figure& figure) {
    if (!figure.recorded) return;
    ++recorded;
    const auto* const found =
        std::find_if(std::begin(kOnRecord), std::end(kOnRecord), [&](const OnRecord& one) {
          return suite.name == one.suite && table.title.starts_with(one.table) &&
                 figure.what == one.what;
        });
    ASSERT_NE(found, std::end(kOnRecord)) << suite.name << ": " << figure.what;
    EXPECT_EQ(figure.recorded->value, found->value) << figure.what;
    const std::string page = source_file(fmt::format("bench/results/{}.md", found->page));
    EXPECT_THAT(page, HasSubstr(found->words)) << figure.what;
    EXPECT_THAT(page, HasSubstr(found->commit_words)) << figure.what;
    EXPECT_THAT(page, HasSubstr("- date: " + figure.recorded->date));
    std::istringstream commits(figure.recorded->commit);
    for (std::string commit; std::getline(commits >> std::ws, commit, ',');) {
      EXPECT_THAT(std::string(found->commit_words), HasSubstr(commit)) << figure.what;
    }
  });
  EXPECT_EQ(recorded, static_cast<int>(std::size(kOnRecord)));
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
