// The suites that come with the program: the figures they cite as published or recorded are really
// where they say.
#include "suite/read_suite.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "base/csv.h"
#include "base/text.h"
#include "suite/outcome_text.h"

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

TEST(ShippedSuites, TheSuitesAndTheirNames) {
  EXPECT_THAT(suite_names(), ElementsAre("interconnect", "mfu-scaling", "slow-down", "survival",
                                         "tracer-overhead"));
  const auto near = find_suite("survivel");
  ASSERT_FALSE(near.has_value());
  EXPECT_EQ(near.error().line(), "bench: unknown suite 'survivel'; did you mean 'survival'?");
  EXPECT_FALSE(find_suite("no/such.toml").has_value());
}

TEST(ShippedSuites, EveryPublishedFigureIsInTheDocumentationUnderItsTable) {
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
  EXPECT_GT(published, 260);
}

// The published figures of a suite, by table and figure.
class Published {
 public:
  explicit Published(std::string suite_name) : suite_(std::move(suite_name)) {
    each_figure([&](const Suite& suite, const FigureTable& table, const Figure& figure) {
      if (suite.name != suite_ || !figure.published) return;
      const bool is_new =
          by_name_.emplace(table.title + "/" + figure.what, *figure.published).second;
      EXPECT_TRUE(is_new) << "twice: " << table.title << "/" << figure.what;
    });
  }
  double operator()(const std::string& table, const std::string& what) const {
    const auto found = by_name_.find(table + "/" + what);
    EXPECT_NE(found, by_name_.end()) << suite_ << ": " << table << "/" << what;
    return found == by_name_.end() ? 0.0 : found->second;
  }

 private:
  std::string suite_;
  std::map<std::string, double> by_name_;
};

// Published figures that follow from others, so that a slip in one shows.
TEST(ShippedSuites, ThePublishedHoursAndDollarsOfInterconnectFollowFromItsSteps) {
  const Published published("interconnect");
  struct Machine {
    const char* step;
    const char* cost;
    double price;
  };
  for (const Machine& one : {Machine{"SXM (NVSwitch)", "SXM, Vast.ai at $12.85", 12.85},
                             Machine{"PCIe", "PCIe, RunPod at $19.12", 19.12},
                             Machine{"NVL", "NVL, RunPod at $21.52", 21.52}}) {
    const double hours = published("training time, 14,889 steps", one.step);
    EXPECT_NEAR(published("step time", one.step) * 14889 / 3.6e6, hours, 0.006);
    EXPECT_NEAR(hours * one.price,
                published("training cost, at the published prices per hour", one.cost), 0.01);
  }
}

TEST(ShippedSuites, ThePublishedExchangeOfInterconnectAddsUp) {
  const Published published("interconnect");
  const char* const size = "size of a call, at 2 bytes an element";
  const char* const by_op = "exchanged by collective, at 2 bytes an element";
  const auto calls = [&](const char* what) { return published("calls per optimizer step", what); };
  double elements = 0;
  double mb = 0;
  double muon_mb = 0;
  for (const char* group : {"lm_head", "wte", "value_embeds", "muon (13, 32)", "muon (1664, 1664)",
                            "muon (1664, 6656)", "muon (6656, 1664)"}) {
    const double count = published("elements of a group, with padding", group);
    const double scattered = published(
        "reduce-scatter of a group at 2 bytes an element; its all-gather is as large", group);
    EXPECT_NEAR(count * 2e-6, scattered, 0.06) << group;
    elements += count;
    mb += scattered;
    if (std::string_view(group).starts_with("muon")) muon_mb += scattered;
  }
  EXPECT_NEAR(elements * 2e-6, published(by_op, "AllGather, both types"), 0.06);
  EXPECT_NEAR(mb, published(by_op, "ReduceScatter, both types"), 0.2);
  EXPECT_NEAR(muon_mb, published(by_op, "ReduceScatter f32"), 0.2);
  EXPECT_NEAR(published(by_op, "ReduceScatter bf16") + published(by_op, "ReduceScatter f32"),
              published(by_op, "ReduceScatter, both types"), 0.06);
  EXPECT_NEAR(published(by_op, "AllGather, both types") / calls("AllGather bf16"),
              published(size, "AllGather, mean"), 0.06);
  EXPECT_NEAR(published(by_op, "ReduceScatter bf16") / calls("ReduceScatter bf16"),
              published(size, "ReduceScatter bf16, mean"), 0.06);
  EXPECT_NEAR(published(by_op, "ReduceScatter f32") / calls("ReduceScatter f32"),
              published(size, "ReduceScatter f32, mean"), 0.06);
  // 8.5 tokens for each parameter that is multiplied.
  EXPECT_EQ(std::floor(8.5 * 918426912 / published("length of the run", "tokens per step")),
            published("length of the run", "steps"));
}

TEST(ShippedSuites, ThePublishedTimesOfInterconnectFollowFromEachOther) {
  const Published published("interconnect");
  const char* const optimizer = "exposed gradient exchange (published: the whole optimizer step)";
  for (const char* machine : {"SXM (NVSwitch)", "PCIe", "NVL", "NVL without shared memory"}) {
    EXPECT_NEAR(
        100 * published(optimizer, machine) / published("step time", machine),
        published(
            "exposed gradient exchange, share of the step (published: the whole optimizer step)",
            machine),
        0.06)
        << machine;
  }
  const auto ratio = [&](const char* what, double more, double less) {
    EXPECT_NEAR(more / less, published("ratios of times", what), 0.06) << what;
  };
  const auto step = [&](const char* machine) { return published("step time", machine); };
  const char* const without = "NVL without shared memory";
  ratio("step: PCIe / SXM", step("PCIe"), step("SXM (NVSwitch)"));
  ratio("step: NVL / SXM", step("NVL"), step("SXM (NVSwitch)"));
  ratio("step: NVL without shared memory / NVL", step(without), step("NVL"));
  ratio("optimizer step: NVL without shared memory / NVL", published(optimizer, without),
        published(optimizer, "NVL"));
  const char* const kernels = "NCCL's kernels in 10 steps";
  ratio("NCCL: NVL without shared memory / NVL", published(kernels, without),
        published(kernels, "NVL"));
  const char* const call = "a call on NVL";
  ratio("AllGather: NVL without shared memory / NVL",
        published(call, "without shared memory: AllGather, mean"),
        published(call, "AllGather, mean"));
  ratio("ReduceScatter f32: NVL without shared memory / NVL",
        published(call, "without shared memory: ReduceScatter f32, mean"),
        published(call, "ReduceScatter f32, mean"));
  for (const std::string machine : {"SXM", "NVL"}) {
    double phases = 0;
    for (const char* phase : {", phase 1: reduces", ", phase 2: computes and gathers",
                              ", phase 3: waits for gathers"}) {
      phases += published("d12: the optimizer step by phase", machine + phase);
    }
    EXPECT_NEAR(phases, published(optimizer, "d12, " + machine), 0.11);
  }
}

TEST(ShippedSuites, ThePublishedThroughputOfSurvivalFollowsFromItself) {
  const Published published("survival");
  for (const std::string model : {"GPT-7B", "LLaMA-13B", "Custom-30B", "GPT-175B, 16 nodes"}) {
    EXPECT_NEAR(published("throughput, optimized", model) /
                    published("throughput, baseline", model + ", tokens/s"),
                published("throughput, baseline", model + ", speed-up over it"), 0.006)
        << model;
  }
  // Efficiencies are one tenth of a percent off what their throughput gives.
  const double one = published("7B by number of nodes", "1 node, 8 GPUs");
  for (const int nodes : {1, 2, 4, 8, 16}) {
    const std::string name = fmt::format("{} node{}", nodes, nodes > 1 ? "s" : "");
    const double efficiency = published("scaling efficiency of 7B", name);
    EXPECT_NEAR(
        100 * published("7B by number of nodes", fmt::format("{}, {} GPUs", name, 8 * nodes)) /
            one / nodes,
        efficiency, 0.11);
    EXPECT_NEAR(published("exposed communication, share of a step of 7B", name), 100 - efficiency,
                0.001);
  }
  // As the page has them, relative to its DDP.
  const char* const strategies = "throughput by strategy, relative to DDP";
  for (const auto& [strategy, of_ddp] : {std::pair("FSDP", 0.92),
                                         {"pipeline parallel, ours pp 4 x dp 8", 0.78},
                                         {"tensor parallel, ours tp 8 x dp 4", 0.85},
                                         {"3D parallel, ours tp 4 x pp 2 x dp 4", 0.75}}) {
    EXPECT_EQ(published(strategies, strategy), of_ddp) << strategy;
  }
  double busy = 0;
  for (const char* part : {"forward pass", "backward pass", "optimizer", "exchange"}) {
    busy += published("where a GPU's time goes", part);
  }
  EXPECT_EQ(busy, published("where a GPU's time goes", "busy, optimized"));
  EXPECT_EQ(busy + published("where a GPU's time goes", "data loading") +
                published("where a GPU's time goes", "idle"),
            100);
  // Seconds are 2 GB over the rate, and one to three percent more.
  for (const auto& [network, rate] : {std::pair("same rack, 600 Gb/s", 75.0),
                                      {"same zone, 400 Gb/s", 50.0},
                                      {"between zones, 100 Gb/s", 12.5},
                                      {"between regions, 25 Gb/s", 3.125}}) {
    EXPECT_NEAR(published("all-reduce of 2 GB by network", network) * rate / 2000, 1.02, 0.01)
        << network;
  }
}

TEST(ShippedSuites, ThePublishedSecondsHoursAndDollarsOfSurvivalFollowFromEachOther) {
  const Published published("survival");
  for (const char* name :
       {"save: 28 GB in 8 s (FSx)", "save: 120 GB in 31 s (FSx)", "load: 28 GB in 5 s (FSx)",
        "load: 120 GB in 19 s (FSx)", "save: 28 GB in 18 s (S3)", "save: 52 GB in 34 s (S3)",
        "save: 120 GB in 78 s (S3)", "load: 28 GB in 12 s (S3)", "load: 52 GB in 23 s (S3)",
        "load: 120 GB in 52 s (S3)"}) {
    int gb = 0;
    int seconds = 0;
    ASSERT_EQ(std::sscanf(name + 6, "%d GB in %d s", &gb, &seconds), 2) << name;
    EXPECT_NEAR(published("throughput of saving and loading a checkpoint", name),
                static_cast<double>(gb) / seconds, 0.005)
        << name;
  }
  const char* const hours = "7B on 4 nodes, time to train";
  const char* const cost = "7B on 4 nodes, cost";
  for (const auto& [size, part] :
       {std::pair("100B tokens", 0.1), {"500B tokens", 0.5}, {"1T tokens", 1.0}}) {
    const std::string name = size;
    EXPECT_NEAR(published(hours, name), 57 * part, 0.001);
    EXPECT_NEAR(published(hours, name + ", baseline"), 183 * part, 0.001);
    for (const std::string price : {"lowest price", "highest price"}) {
      EXPECT_NEAR(published(cost, name + ", spot, " + price), 892 * part, 0.001);
      EXPECT_NEAR(published(cost, name + ", on demand, " + price), 2416 * part, 0.001);
    }
  }
  EXPECT_NEAR(published(cost, "10^9 tokens, spot, lowest price"), 0.892, 0.003);
  const char* const parts = "7B on 4 nodes, 10^12 tokens, cost by component";
  const double besides = published(parts, "storage (FSx)") + published(parts, "network transfer") +
                         published(parts, "checkpoints (S3)");
  EXPECT_NEAR(published(parts, "compute, on demand") + besides, published(parts, "all, on demand"),
              0.001);
  EXPECT_NEAR(published(parts, "compute, spot") + besides, published(parts, "all, spot"), 0.001);
  EXPECT_NEAR(
      100 * published(parts, "compute, spot") / published(parts, "compute, on demand"),
      published("cost with a technique, relative to without it", "spot machines, lowest prices"),
      0.1);
  EXPECT_NEAR(1000 / published("spot machines", "preemptions in 1,000 hours"),
              published("spot machines", "hours between preemptions"), 0.05);
  const double watts =
      published("power while training", "per GPU (published: A100); here: the processors");
  const double kw = published("power of 32 GPUs at 320 W", "4 nodes");
  EXPECT_NEAR(32 * watts / 1000, kw, 0.001);
  EXPECT_NEAR(published("throughput, optimized", "GPT-7B") / kw,
              published("work per energy", "7B on A100 (published), 8B on one H200"), 50);
  // "69 % less"
  EXPECT_NEAR(
      published("CO2 of 10^12 tokens, 7B on 4 nodes", "optimized, at 320 W and a PUE of 1.12") /
          published("CO2 of 10^12 tokens, 7B on 4 nodes", "baseline"),
      0.31, 0.005);
}

// Where a recorded figure is documented: the page, and the exact words that contain the number.
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
    {"mfu-scaling", "ranks on one GPU", "dp 2", "ranks",
     "| dp 2 | 79,962 / 80,044 | 80,594 / 80,743 | 1.008 (1.008, 1.009) |", 1.008,
     "- commit: c82d618\n"},
    {"mfu-scaling", "ranks on one GPU", "fsdp 2", "ranks",
     "| fsdp 2, zero 3 | 80,046 / 79,978 | 80,693 / 80,715 | 1.009 (1.008, 1.009) |", 1.009,
     "- commit: c82d618\n"},
    {"mfu-scaling", "ranks on one GPU", "pp 2", "ranks",
     "| pp 2, 1f1b | 79,550 / 79,300 | 79,620 / 79,605 | 1.002 (1.001, 1.004) |", 1.002,
     "- commit: c82d618\n"},
    {"mfu-scaling", "ranks on one GPU", "fsdp 4", "ranks",
     "| fsdp 4, zero 3 | 80,435 / 80,204 | 81,141 / 81,144 | **1.010** (1.009, 1.012) |", 1.010,
     "- commit: c82d618\n"},
    {"mfu-scaling", "mixture", "1 GPU", "moe", "2 of 8 experts, bf16 | **30,886** |", 30886,
     "- commit: 7a548ae1\n"},
    {"mfu-scaling", "mixture", "1 GPU, products in fp8", "moe", "| the same, fp8 | **36,926** |",
     36926, "- commit: 7a548ae1\n"},
    {"slow-down", "a launch", "bare", "gpu", "| bare | 2.02 | 1.99–2.06 |", 2.02,
     "- commit: 3f879a4\n"},
    {"slow-down", "a launch", "through a library that only jumps", "gpu",
     "| a jump and nothing else | 2.85 | 2.80–2.88 |", 2.85, "- commit: 3f879a4\n"},
    {"slow-down", "a launch", "counting, as under assay run", "gpu",
     "| counting | 2.84 | 2.82–2.87 |", 2.84, "- commit: 3f879a4\n"},
    {"survival", "throughput of saving", "save: 28 GB in 8 s (FSx)", "train",
     "written (1.8 GB/s, this disk)", 1.8, "on the same card, 0a0e23d:"},
    {"survival", "checkpoint of", "a step while state is copied, of one without", "train",
     "| 7, while state is copied | 2.5620 | 1.0007 |", 1.0007, "on the same card, 0a0e23d:"},
    {"survival", "where", "optimizer", "train", "| AdamW | 34 | 4.2 TB/s |", 1.3,
     "122.6 / 123 GiB | 408e404 |"},
    {"survival", "where", "idle", "train", "| between ops | 3 |", 0.1,
     "122.6 / 123 GiB | 408e404 |"},
    {"survival", "power while", "per GPU (published: A100); here: the processors", "train",
     "While a step runs: 692 W, 1509 MHz,", 692, "f13ead7"},
    {"survival", "work", "7B on A100 (published), 8B on one H200", "train",
     "0.0536 J per token (18.7 tokens per joule) in bf16 on text", 18700, "f13ead7"},
    {"tracer-overhead", "added to a step", "d12 / small, preload", "gpu",
     "Loop: −0.08 %, 95 % interval [−0.29, +0.13];", -0.08,
     "- commit: f480288 (pairs 1 to 3), baa17d5 (pairs 4 to 7)"},
};

TEST(ShippedSuites, EveryRecordedFigureIsInTheResultsVerbatim) {
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

TEST(ShippedSuites, TheRowsOfMfuScalingAreThePublishedOnes) {
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
  auto ours = rows_of(suite->find_case("rows")->text);
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

TEST(ShippedSuites, EverySuiteHasSomethingForAQuickRun) {
  for (const std::string& name : suite_names()) {
    const auto suite = find_suite(name);
    ASSERT_TRUE(suite.has_value());
    const auto quick = std::count_if(suite->cases.begin(), suite->cases.end(),
                                     [](const SuiteCase& each) { return each.quick; });
    EXPECT_GT(quick, 0) << name;
    EXPECT_FALSE(suite->reproduces.empty()) << name;
  }
}

// What a suite says about the planner's fit agrees with the fitted rows.
TEST(ShippedSuites, CasesInTheFitAreAmongTheFittedRows) {
  const std::string fitted = source_file("tests/data/plan/training_rows.csv");
  std::size_t rows = 0;
  for (const std::string& name : suite_names()) {
    const auto suite = find_suite(name);
    ASSERT_TRUE(suite) << name;
    for (const SuiteCase& each : suite->cases) {
      if (each.kind != CaseKind::kRows) continue;
      std::istringstream lines(each.text);
      for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line.starts_with("id,")) continue;
        // Without the id, the source and the model's name, which the suite may write differently.
        std::size_t at = 0;
        for (int comma = 0; comma < 3; ++comma) at = line.find(',', at) + 1;
        EXPECT_EQ(fitted.find("," + line.substr(at)) != std::string::npos, each.in_fit) << line;
        ++rows;
      }
    }
  }
  EXPECT_EQ(rows, 14U);
  // Cases that plan a job have no row; of these the published step is among the fitted.
  const auto suite = find_suite("interconnect");
  ASSERT_TRUE(suite);
  for (const auto& [name, step_s] :
       {std::pair("sxm", ",0.7019,"), std::pair("pcie", ",1.4116,"), std::pair("nvl", ",2.0315,"),
        std::pair("d12-sxm", ",0.179,"), std::pair("sxm-two-sockets", ",1.295,")}) {
    EXPECT_TRUE(suite->find_case(name)->in_fit) << name;
    EXPECT_THAT(fitted, HasSubstr(step_s)) << name;
  }
  EXPECT_FALSE(suite->find_case("d12-nvl")->in_fit);
}

}  // namespace
}  // namespace assay::suite
