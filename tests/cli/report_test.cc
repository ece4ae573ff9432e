// `assay report` from the command line, and its page in a browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "cli/recorded_project.h"
#include "store/metrics.h"
#include "store/plans.h"
#include "store/ranks.h"
#include "store/run_reader.h"
#include "support/browser.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// What a hostile command line may look like.
constexpr const char* kHostile = "<script>alert(1)</script>";

class ReportCli : public ::testing::Test {
 protected:
  // A run that trained for so many steps, and its project.
  store::RunId train(std::int64_t steps, const std::string& argument = "") {
    store::RunRecord recorded = project_.describe("train train.bin=t -> model.bin=m");
    if (!argument.empty()) recorded.command.push_back(argument);
    const store::RunId id = project_.record(recorded);
    const auto head = store::head_of(project_.store(), id);
    auto writer = store::MetricWriter::begin(project_.store(), head->uid);
    std::vector<store::MetricRow> rows;
    double at = static_cast<double>(head->started_unix_ns) / 1e9 + 0.1;
    for (std::int64_t step = 1; step <= steps; ++step) {
      const double took = 0.01 + 0.001 * std::sin(static_cast<double>(step));
      at += took;
      rows.push_back({step,
                      {{"unix_s", "s", at},
                       {"loss", "", 4 - static_cast<double>(step) / 100},
                       {"seconds", "s", took},
                       {"tokens_per_s", "tokens/s", 2048 / took},
                       {"mfu", "fraction", 0.4},
                       {"memory_bytes", "bytes", 3e9},
                       {"watts", "W", 300 + static_cast<double>(step % 7)},
                       {"joules", "J", 300 * took},
                       {"validation_loss", "", 4.1}}});
    }
    EXPECT_TRUE(writer->write(rows).value_or(false));
    return id;
  }
  void compare() {
    const auto outcome = run({"compare", "--a", "echo 100", "--b", "echo 102", "--metric",
                              "regex:[0-9]+", "--max-pairs", "7", "-o", "exp", "--quiet"});
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  }
  support::ProcessResult run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), support::program());
    return support::run({arguments, "", project_.path()});
  }
  void refused(std::vector<std::string> arguments, int exit_code, const std::string& line) {
    arguments.insert(arguments.begin(), "report");
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.out;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(outcome.err, "assay: " + line + "\n");
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(project_.path() / name) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(project_.path() / name).rdbuf();
    return text.str();
  }

  RecordedProject project_;
};

TEST_F(ReportCli, TheLastRunIsAPageInOneFile) {
  train(40);
  const auto outcome = run({"report"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("report.html: "));
  const std::string page = read("report.html");
  EXPECT_THAT(page, HasSubstr("data-chart=\"loss\""));
  EXPECT_THAT(page, HasSubstr("data-chart=\"lineage\""));
  struct stat file {};
  EXPECT_EQ(::stat((project_.path() / "report.html").c_str(), &file), 0);
  EXPECT_NE(file.st_mode & S_IRGRP, 0U) << "a page is made to be passed on";
}

// Wherever the options stand.
TEST_F(ReportCli, APageIsNotTheLastRunAndNoStage) {
  train(3);
  const auto id = [&] {
    const base::Json shown = base::Json::parse(run({"show", "last", "--json"}).out);
    return shown["run"]["id"].get<int>();
  };
  const int trained = id();
  EXPECT_EQ(run({"-q", "report"}).exit_code, 0);
  EXPECT_EQ(id(), trained);
  EXPECT_EQ(run({"--json", "report"}).exit_code, 0);
  EXPECT_EQ(run({"report", "-q"}).exit_code, 0);
  EXPECT_EQ(id(), trained);
  const auto status = run({"status", "--json"});
  EXPECT_THAT(status.out, Not(HasSubstr("report")));
  EXPECT_THAT(run({"lineage", "report.html"}).out, HasSubstr("report")) << "but it is recorded";
}

TEST_F(ReportCli, SeveralThingsAreOnePage) {
  const store::RunId id = train(10);
  compare();
  write("suite.json", R"({"suite": "s", "goals": [{"what": "w", "verdict": "PASS"}]})");
  const auto outcome =
      run({"report", std::to_string(id), "exp", "suite.json", "-o", "all.html", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json printed = Json::parse(outcome.out);
  ASSERT_EQ(printed.at("parts").size(), 3U);
  EXPECT_THAT(printed["parts"][0]["title"].get<std::string>(), HasSubstr("train"));
  EXPECT_EQ(printed["parts"][1]["title"], "echo 102 against echo 100");
  EXPECT_EQ(printed["parts"][1]["verdict"], "FAIL");
  EXPECT_EQ(printed["parts"][2]["verdict"], "reached");
  EXPECT_EQ(printed["bytes"], fs::file_size(project_.path() / "all.html"));
  // The verdicts come first.
  const std::string text =
      run({"report", std::to_string(id), "exp", "suite.json", "--format", "md"}).out;
  EXPECT_THAT(text, HasSubstr("# 1 run, 1 experiment and 1 suite\n"));
  EXPECT_LT(text.find("| echo 102 against echo 100 | FAIL |"), text.find("\n## run:"));
}

TEST_F(ReportCli, OneOfSeveralMayBeEmpty) {
  compare();
  fs::copy(project_.path() / "exp", project_.path() / "begun", fs::copy_options::recursive);
  const std::string journal = read("begun/runs.jsonl");
  write("begun/runs.jsonl", journal.substr(0, journal.find('\n') + 1));
  fs::create_directory(project_.path() / "cut");
  write("cut/run.json", R"({"suite": "survival"})");
  // Killed before, or while, the first line of the journal was written.
  for (const char* folder : {"killed", "killed-writing", "killed-scan"}) {
    fs::create_directory(project_.path() / folder);
  }
  write("killed/runs.jsonl", "");
  write("killed-writing/runs.jsonl", journal.substr(0, 200));
  const Json experiment = Json::parse(journal.substr(0, journal.find('\n')))["experiment"];
  const Json point{{"name", "N=1"}, {"values", Json::array({"1"})}, {"experiment", experiment}};
  const Json plan{{"scanned", Json::array({"N"})}, {"points", Json::array({point})}};
  write("killed-scan/scan.json", plan.dump());
  const auto outcome = run({"report", "begun", "exp", "cut", "killed", "killed-writing",
                            "killed-scan", "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json parts = Json::parse(outcome.out)["parts"];
  ASSERT_EQ(parts.size(), 6U);
  for (const std::size_t i : {3U, 4U, 5U}) {
    EXPECT_EQ(parts[i]["verdict"], "NO VERDICT");
    EXPECT_THAT(parts[i]["verdict_text"].get<std::string>(), HasSubstr("killed"));
  }
  EXPECT_EQ(parts[5]["kind"], "scan");
  EXPECT_THAT(run({"report", "killed"}).err, HasSubstr("no complete first line"));
  EXPECT_EQ(parts[0]["verdict"], "NO VERDICT");
  EXPECT_EQ(parts[0]["sections"][0]["title"], "Nothing to compare yet");
  EXPECT_EQ(parts[0]["sections"][0]["blocks"][0]["note"], "No run has finished.");
  EXPECT_EQ(parts[1]["verdict"], "FAIL");
  EXPECT_EQ(parts[2]["title"], "survival");
  EXPECT_EQ(parts[2]["verdict"], "NO VERDICT");
}

TEST_F(ReportCli, WithoutARunTheLatestExperimentIsShown) {
  EXPECT_EQ(run({"report"}).exit_code, 64);
  compare();
  Json parts = Json::parse(run({"report", "--format", "json"}).out)["parts"];
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0]["kind"], "experiment");
  // One that the project keeps itself.
  EXPECT_EQ(run({"compare", "--a", "echo 1", "--b", "echo 3", "--metric", "regex:[0-9]+",
                 "--max-pairs", "7", "--quiet"})
                .exit_code,
            1);
  parts = Json::parse(run({"report", "--format", "json"}).out)["parts"];
  EXPECT_EQ(parts[0]["title"], "echo 3 against echo 1");
  // One that failed has nothing to show.
  EXPECT_EQ(run({"compare", "--a", "false", "--b", "true", "--quiet"}).exit_code, 3);
  parts = Json::parse(run({"report", "--format", "json"}).out)["parts"];
  EXPECT_EQ(parts[0]["title"], "echo 3 against echo 1");
  train(3);
  EXPECT_EQ(Json::parse(run({"report", "--format", "json"}).out)["parts"][0]["kind"], "run");
}

TEST_F(ReportCli, ASuiteIsItsFolderOrItsName) {
  train(3);
  ASSERT_EQ(run({"bench", "interconnect", "--quick", "-o", "links", "--quiet"}).exit_code, 0);
  const Json by_folder = Json::parse(run({"report", "links", "--format", "json"}).out);
  EXPECT_EQ(by_folder["parts"][0]["verdict"], "planned");
  EXPECT_EQ(by_folder["parts"][0]["title"],
            "interconnect: nanochat d26 on H100 SXM, PCIe and NVL: exchange, step, cost");
  // By name, the latest in the project: other suites and runs without a result are not it.
  ASSERT_EQ(run({"bench", "interconnect", "--quick", "--quiet"}).exit_code, 0);
  ASSERT_EQ(run({"bench", "interconnect", "--quiet"}).exit_code, 0);
  ASSERT_EQ(run({"bench", "survival", "--quick", "--quiet"}).exit_code, 0);
  fs::create_directories(project_.path() / ".assay/bench/99");
  write(".assay/bench/99/run.json", R"({"suite": "interconnect"})");
  const Json by_name = Json::parse(run({"report", "interconnect", "--format", "json"}).out);
  EXPECT_EQ(by_name["parts"][0]["data"]["suite"], "interconnect");
  EXPECT_EQ(by_name["parts"][0]["data"]["quick"], false);
}

TEST_F(ReportCli, FormatsHaveTheSameContent) {
  train(40);
  const auto text = run({"report", "last", "--format", "md", "--price", "$3.6", "--carbon", "400"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("| price | \\$3.60 per hour |"));
  const Json json = Json::parse(run({"report", "last", "--format", "json"}).out);
  EXPECT_EQ(json["parts"][0]["kind"], "run");
  EXPECT_EQ(json["parts"][0]["data"]["metrics"][1]["values"].size(), 40U);
  // The name of a file says its form as well.
  run({"report", "-o", "r.md"});
  EXPECT_THAT(read("r.md"), ::testing::StartsWith("# train"));
  run({"report", "-o", "r.json"});
  EXPECT_EQ(Json::parse(read("r.json"))["parts"].size(), 1U);
}

TEST_F(ReportCli, PricesComeFromPresetsWithTheirDates) {
  store::RunRecord recorded = project_.describe("train train.bin=t -> model.bin=m");
  recorded.duration_s = 7200;
  recorded.context.machine = Json::parse(R"({"gpus": [{"index": 0, "name": "NVIDIA H200"}]})");
  project_.record(recorded);
  const Json page = Json::parse(run({"report", "--format", "json"}).out);
  Json offers;
  for (const Json& section : page["parts"][0]["sections"]) {
    for (const Json& block : section["blocks"]) {
      const bool found = block.contains("columns") && block["columns"][0] == "offer";
      if (found) offers = block["rows"];
    }
  }
  ASSERT_GT(offers.size(), 0U);
  for (const Json& offer : offers) {
    EXPECT_DOUBLE_EQ(offer[3], 2 * offer[2].get<double>());  // two hours of it
    EXPECT_THAT(offer[4].get<std::string>(), ::testing::StartsWith("20"));
  }
}

TEST_F(ReportCli, ARunOfTheTrainerHasItsMemoryPredictedOnCpusToo) {
  store::RunRecord recorded = project_.describe("x train.bin=t -> model.bin=m");
  recorded.command = {"/usr/bin/assay-train", "train",    "demo", "--set",
                      "train.recompute=none", "--device", "cpu"};
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  recorded.context.host = host;
  project_.record(recorded);
  const Json data = Json::parse(run({"report", "--format", "json"}).out)["parts"][0]["data"];
  // What docs/train.md shows that the trainer planned, but for what libraries take.
  EXPECT_NEAR(data["predicted"]["memory_bytes"].get<double>(), 86'149'376, 100'000);
  const std::string text = run({"report", "--format", "md"}).out;
  EXPECT_THAT(text, HasSubstr("Step times are not predicted"));
  EXPECT_THAT(text, HasSubstr("not stored with the run; predicted now, from the job as it is"));
}

// The ranks on a machine share its memory, which decides what is recomputed; those on others do
// not.
TEST_F(ReportCli, RanksOnOtherMachinesDoNotShareThisOnesMemory) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const auto predicted = [&](double machine_bytes, int ranks_here) {
    store::RunRecord recorded = project_.describe("x train.bin=t -> model.bin=m");
    recorded.command = {
        "/usr/bin/assay-train", "train",    "demo", "--set", "train.recompute=auto", "--set",
        "layout.fsdp=4",        "--device", "cpu"};
    recorded.context.host = host;
    recorded.context.machine["memory_bytes"] = static_cast<std::int64_t>(machine_bytes);
    const store::RunId id = project_.record(recorded);
    std::vector<store::RankRecord> ranks(4);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].rank = static_cast<std::int64_t>(i);
      ranks[i].host = static_cast<int>(i) < ranks_here ? std::string(host).substr(0, 63) : "other";
    }
    EXPECT_TRUE(
        store::write_ranks(project_.store(), store::head_of(project_.store(), id)->uid, ranks));
    const auto outcome = run({"report", "--format", "json"});
    const Json data = Json::parse(outcome.out)["parts"][0]["data"];
    return data["predicted"].is_object() ? data["predicted"]["memory_bytes"].get<double>() : 0.0;
  };
  const double whole = predicted(1e12, 4);
  ASSERT_GT(whole, 0);
  EXPECT_EQ(predicted(4 * 1.3 * whole, 4), whole);
  EXPECT_EQ(predicted(2 * 1.3 * whole, 2), whole);
  EXPECT_NE(predicted(2 * 1.3 * whole, 4), whole) << "it makes a difference";
}

TEST_F(ReportCli, AStoredPlanIsShownAsItWasMade) {
  const store::RunId id = train(20);
  const auto head = store::head_of(project_.store(), id);
  store::PlanRecord record{
      .planned_unix_ns = 1'763'276'400'000'000'000, .job = "mine", .device = "NVIDIA H200"};
  record.plan = Json::parse(R"({"name": "mine", "device": "NVIDIA H200", "framework": "assay",
    "recompute": "none", "constants": "0123456789abcdef", "ranks": 1, "tokens_per_step": 2048,
    "step_s": 0.0125, "interval": {"low": 0.9, "high": 1.2}, "comparable_rows": 9,
    "comparable": "fused", "extrapolations": [], "tokens_per_s": 163840, "clock": 0.9,
    "mfu": {"published": 0.5, "current": 0.45}, "unknown": [],
    "breakdown": {"products": 0.01, "attention": 0.0025, "passes": 0, "head": 0, "routing": 0,
      "tensor": 0, "context": 0, "experts": 0, "shards": 0, "gradients": 0, "pipeline": 0,
      "host": 0, "optimizer": 0, "other": 0},
    "memory_bytes": {"parameters": 1000, "gradients": 1000, "optimizer": 1000,
      "activations": 1000, "gathered": 0, "workspace": 1000, "stage": 0, "device": 9000,
      "counted": false}})");
  ASSERT_TRUE(*store::write_plan(project_.store(), head->uid, record));
  const Json data = Json::parse(run({"report", "--format", "json"}).out)["parts"][0]["data"];
  EXPECT_EQ(data["predicted"]["step_s"], 0.0125);
  EXPECT_DOUBLE_EQ(data["predicted"]["step_high_s"].get<double>(), 0.015);
  EXPECT_EQ(data["predicted"]["memory_bytes"], 5000);
  EXPECT_EQ(data["predicted"]["of"], "mine on NVIDIA H200");
  EXPECT_EQ(data["predicted"]["parts_s"].size(), 2U);
  EXPECT_EQ(data["predicted"]["source"],
            "planned when the run started, 2025-11-16T07:00:00Z; the model's constants have "
            "changed since");
}

TEST_F(ReportCli, TracesAndLiveValuesNeedNoPage) {
  train(40);
  const auto outcome = run({"report", "--perfetto", "t.json", "--prometheus", "-"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(Json::parse(read("t.json"))["traceEvents"].size(), 40U);
  EXPECT_THAT(outcome.out, HasSubstr("assay_run_step{"));
  EXPECT_FALSE(fs::exists(project_.path() / "report.html"));
}

TEST_F(ReportCli, AnExperimentThatWasCutOffDecidesNothing) {
  compare();
  // Killed before it said how it ended.
  const std::string whole = read("exp/runs.jsonl");
  const std::size_t end = whole.find("{\"analysis\":");
  ASSERT_NE(end, std::string::npos);
  write("exp/runs.jsonl", whole.substr(0, end));
  run({"report", "exp", "-o", "e.json"});
  EXPECT_EQ(Json::parse(read("e.json"))["parts"][0]["verdict"], "INCONCLUSIVE");
  // Looking changes nothing, not even a line that was cut short.
  const std::string journal = read("exp/runs.jsonl") + "{\"run\":";
  write("exp/runs.jsonl", journal);
  EXPECT_EQ(run({"report", "exp", "-o", "e.json"}).exit_code, 0);
  EXPECT_EQ(read("exp/runs.jsonl"), journal);
}

TEST_F(ReportCli, MistakesAreOneLine) {
  train(3);
  refused({"nonsense"}, 64,
          run({"show", "nonsense"})
              .err.substr(7, std::string::npos)
              .substr(0, run({"show", "nonsense"}).err.size() - 8));
  fs::create_directory(project_.path() / "empty");
  refused({"empty"}, 64,
          "empty: is a folder without an experiment, a scan or a suite, and no run has this name; "
          "folders of assay compare have runs.jsonl or scan.json, those of assay bench run.json");
  refused({"survival"}, 64,
          "survival: the project has no result of this suite, and no run of this name; run assay "
          "bench survival, or name a result's folder");
  write("empty/run.json", "{}");
  refused({"empty"}, 3,
          "empty: contains a suite run without a result; continue with assay bench --resume empty");
  refused({"-o", "r.pdf"}, 64,
          "r.pdf: unknown format 'pdf'; use .html, .md or .json, or give --format");
  write("x.json", "{");
  refused({"x.json"}, 64, "x.json: is not JSON; name the result of a suite");
  refused({"--format", "pdf"}, 64, "report: unknown format 'pdf'; expected one of: html, md, json");
  refused({"--price", "cheap"}, 64,
          "--price: 'cheap' is not a number from 0 to 10,000,000; price in dollars per hour, for "
          "all machines together, as in --price 31.92");
  refused(
      {"--carbon", "-1"}, 64,
      "--carbon: '-1' is not a number from 0 to 10,000; grams of CO2 per kWh, as in --carbon 380");
  refused({"x.json", "-o", "nowhere/r.html"}, 64,
          "x.json: is not JSON; name the result of a suite");
  const auto nowhere = run({"report", "-o", "nowhere/r.html"});
  EXPECT_EQ(nowhere.exit_code, 3);
  EXPECT_THAT(nowhere.err, ::testing::StartsWith("assay: nowhere/r.html: "));
  EXPECT_EQ(std::count(nowhere.err.begin(), nowhere.err.end(), '\n'), 1);
  // An experiment of which nothing is done yet.
  compare();
  const std::string journal = read("exp/runs.jsonl");
  write("exp/runs.jsonl", journal.substr(0, journal.find('\n') + 1));
  refused({"exp"}, 3,
          "exp: has no finished pair of runs yet; continue with assay compare --resume exp");
  write("exp/runs.jsonl", "nonsense\n");
  refused({"exp"}, 3, "exp/runs.jsonl: has a line that is not a JSON object");
}

TEST_F(ReportCli, WithoutAProjectExperimentsStillHaveAPage) {
  compare();
  fs::remove_all(project_.path() / ".assay");
  EXPECT_EQ(run({"report", "exp"}).exit_code, 0);
  EXPECT_EQ(run({"report"}).exit_code, 3);
}

TEST_F(ReportCli, AJobIsAPageOfItsPlan) {
  const auto outcome = run({"report", "llama3-13b-h200x32", "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json part = Json::parse(outcome.out)["parts"][0];
  EXPECT_EQ(part["kind"], "plan");
  EXPECT_EQ(part["title"], "llama3-13b-h200x32");
  EXPECT_EQ(part["verdict"], "fits");
  std::vector<std::string> charts;
  for (const Json& section : part["sections"]) {
    for (const Json& block : section["blocks"]) {
      if (block.contains("chart")) charts.push_back(block["chart"]);
    }
  }
  EXPECT_THAT(charts, ::testing::ElementsAre("plan-breakdown", "plan-memory", "plan-scaling",
                                             "plan-offers"));
  // What `assay plan` writes is the same plan, with any of its options.
  write("plan.json", run({"plan", "llama3-13b-h200x32", "--json"}).out);
  write("search.json", run({"plan", "llama3-13b-h200x32", "--search", "--json"}).out);
  const auto files = run({"report", "plan.json", "search.json", "--format", "json"});
  ASSERT_EQ(files.exit_code, 0) << files.err;
  const Json parts = Json::parse(files.out)["parts"];
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0]["sections"][0], part["sections"][0]);
  EXPECT_EQ(parts[1]["verdict"], "recommended");
  // One job, one recommendation; the page says where was searched.
  const Json searched = part["data"]["search"];
  EXPECT_EQ(searched["recommended"], Json::parse(read("search.json"))["recommended"]);
  EXPECT_EQ(searched["everywhere"], false);
  EXPECT_THAT(part["sections"].dump(),
              HasSubstr("Only the job's own cluster was searched; assay plan JOB --search "
                        "--everywhere"));
  EXPECT_THAT(parts[1]["sections"].dump(), HasSubstr("Only the job's own cluster was searched"));
  // A job file; what is no plan is one line.
  write("job.toml", "extends = \"moe-9b-h200\"\n");
  EXPECT_EQ(run({"report", "job.toml", "-o", "page.html"}).exit_code, 0);
  write("bad.toml", "[model]\nlayers = -1\n");
  EXPECT_EQ(run({"report", "bad.toml", "-o", "page.html"}).exit_code, 64);
  refused({"missing.toml"}, 64, "missing.toml: no such file");
}

// Words of tables that are continued on another line, as no reader expects: all but those that are
// too long for any line.
constexpr const char* kBrokenWords = R"js((() => {
  const broken = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.parentElement.closest('table') || node.parentElement.closest('.same')) continue;
    if (node.parentElement.closest('.linked')) continue;  // a command may wrap after punctuation
    for (const word of node.data.matchAll(/\S+/g)) {
      if (word[0].length > 30) continue;
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (tops.size > 1 && !word[0].includes('-')) broken.push(word[0]);
    }
  }
  return broken.join(' ');
})())js";
// The same of cells that are a number or a verdict.
constexpr const char* kBrokenLines = R"js((() => {
  const broken = [];
  document.querySelectorAll('td[data-n], td.verdict').forEach(cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
    if (tops.size > 1) broken.push(cell.textContent);
  });
  return broken.join('; ');
})())js";

// Labels of charts whose letters are lower than 9 pixels on the screen.
constexpr const char* kSmallLabels = R"js((() => {
  const small = [];
  document.querySelectorAll('figure svg').forEach(svg => {
    const box = svg.getBoundingClientRect();
    if (box.width === 0) return;
    const scale = box.width / svg.viewBox.baseVal.width;
    svg.querySelectorAll('text').forEach(text => {
      const pixels = parseFloat(getComputedStyle(text).fontSize) * scale;
      if (pixels < 9) small.push(text.textContent + ' ' + pixels);
    });
  });
  return small.slice(0, 3).join('; ');
})())js";

// Labels of points that overlap another one's, in the drawing that is shown.
constexpr const char* kTouchingLabels = R"js((() => {
  const touching = [];
  document.querySelectorAll('[data-chart="plan-offers"] svg').forEach(svg => {
    const shown = [...svg.querySelectorAll('text.halo')].map(t => [t, t.getBoundingClientRect()])
        .filter(([t, r]) => r.height > 0);
    shown.forEach(([t, r], i) => shown.slice(i + 1).forEach(([u, q]) => {
      const inside = 2;
      if (r.left + inside < q.right && q.left + inside < r.right && r.top + inside < q.bottom &&
          q.top + inside < r.bottom) touching.push(t.textContent + ' / ' + u.textContent);
    }));
  });
  return touching.slice(0, 3).join('; ');
})())js";

TEST_F(ReportCli, APlanInABrowser) {
  if (support::Browser::program().empty()) {
    GTEST_SKIP() << "Chromium is not installed: scripts/setup browser";
  }
  const std::string name(120, 'j');
  write(name + ".toml", "extends = \"moe-9b-h200x32\"\n");
  ASSERT_EQ(run({"report", "llama3-13b-h200x32", name + ".toml"}).exit_code, 0);
  const fs::path artifacts = fs::path(support::program()).parent_path() / "tests/artifacts/report";
  const auto browser = support::Browser::start(project_.path());
  ASSERT_NE(browser, nullptr);
  const std::vector<std::pair<const char*, support::Screen>> screens = {
      {"plan-light", {}}, {"plan-dark", {.dark = true}}, {"plan-phone", {.width = 390}}};
  for (const auto& [name_of_screen, screen] : screens) {
    SCOPED_TRACE(name_of_screen);
    ASSERT_TRUE(browser->open(project_.path() / "report.html", screen));
    EXPECT_THAT(browser->errors(), IsEmpty());
    EXPECT_THAT(browser->requests(), IsEmpty());
    EXPECT_LE(browser->value("document.documentElement.scrollWidth"), screen.width);
    EXPECT_EQ(browser->value("[...document.querySelectorAll('figure svg')].filter(s => "
                             "s.getBoundingClientRect().height > 50).length"),
              browser->value("document.querySelectorAll('figure').length"));
    if (screen.width >= 1200) {
      EXPECT_EQ(browser->value("[...document.querySelectorAll('.scroll[aria-label^=Pareto]')]"
                               ".filter(s => s.scrollWidth > s.clientWidth).length"),
                0)
          << "layouts are cut";
    }
    // The recommendation is named in each drawing, and no two labels touch.
    EXPECT_EQ(browser->value("[...document.querySelectorAll('[data-chart=\"plan-offers\"] svg')]"
                             ".filter(s => s.getBoundingClientRect().height > 50 && "
                             "![...s.querySelectorAll('text')].some(t => "
                             "t.textContent.startsWith('recommended'))).length"),
              0);
    EXPECT_EQ(browser->value(kTouchingLabels), "");
    EXPECT_EQ(browser->value(kSmallLabels), "");
    EXPECT_EQ(browser->value(kBrokenWords), "");
    EXPECT_EQ(browser->value(kBrokenLines), "");
    EXPECT_TRUE(browser->save_screenshot(artifacts / (std::string(name_of_screen) + ".png")));
  }
}

// The page in a browser. The screenshots are for people: build/tests/artifacts.
TEST_F(ReportCli, APageInABrowser) {
  if (support::Browser::program().empty()) {
    GTEST_SKIP() << "Chromium is not installed: scripts/setup browser";
  }
  train(300, kHostile);
  compare();
  write("suite.json", R"({"suite": "s", "goals": [{"what": "</script><b>", "verdict": "FAIL"}],
    "tables": [{"title": "t", "columns": ["n"], "rows": [[2], [10], [1]]}]})");
  // 1: a goal is missed, and the page shows which.
  ASSERT_EQ(run({"bench", "mfu-scaling", "--quick", "-o", "mfu", "--quiet"}).exit_code, 1);
  ASSERT_EQ(run({"report", "last", "exp", "mfu", "suite.json"}).exit_code, 0);
  const fs::path page = project_.path() / "report.html";
  const fs::path artifacts = fs::path(support::program()).parent_path() / "tests/artifacts/report";
  const auto browser = support::Browser::start(project_.path());
  ASSERT_NE(browser, nullptr);

  struct Case {
    const char* name;
    support::Screen screen;
  };
  const std::vector<Case> cases = {{"light", {}},
                                   {"dark", {.dark = true}},
                                   {"phone", {.width = 390}},
                                   {"print", {.print = true, .width = 760}},
                                   {"no-scripts", {.scripts = false}}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    ASSERT_TRUE(browser->open(page, one.screen));
    EXPECT_THAT(browser->errors(), IsEmpty());
    EXPECT_THAT(browser->requests(), IsEmpty());
    // Every chart is shown once; nothing makes the page wider than the window.
    EXPECT_EQ(browser->value("[...document.querySelectorAll('figure svg')].filter(s => "
                             "s.getBoundingClientRect().height > 50).length"),
              browser->value("document.querySelectorAll('figure').length"));
    for (const char* chart :
         {"step-times", "loss", "throughput", "mfu", "memory", "power", "time-breakdown",
          "timeline", "lineage", "pairs-1", "estimates-1", "suite-1"}) {
      EXPECT_EQ(browser->value(std::string("document.querySelectorAll('[data-chart=\"") + chart +
                               "\"] .drawing svg').length"),
                2)
          << chart;
    }
    EXPECT_LE(browser->value("document.documentElement.scrollWidth"), one.screen.width);
    if (one.screen.width >= 1200) {
      EXPECT_EQ(
          browser->value("[...document.querySelectorAll('.scroll')].filter(s => s.scrollWidth "
                         "> s.clientWidth).map(s => s.getAttribute('aria-label')).join()"),
          "")
          << "what has to be scrolled to on a large screen";
    }
    // Charts are never scaled down so far that their labels cannot be read.
    EXPECT_EQ(browser->value(kSmallLabels), "");
    EXPECT_EQ(browser->value(kBrokenWords), "");
    EXPECT_EQ(browser->value(kBrokenLines), "");
    // Hostile text is text.
    EXPECT_EQ(browser->value("document.querySelectorAll('b').length"), 0);
    EXPECT_EQ(browser->value("document.querySelector('article h2').textContent.includes("
                             "'<script>alert(1)</script>')"),
              true);
    const std::string background =
        browser->value("getComputedStyle(document.body).backgroundColor");
    EXPECT_EQ(background, one.screen.dark ? "rgb(20, 23, 27)" : "rgb(255, 255, 255)");
    const bool scripted = browser->value("document.querySelectorAll('thead button').length") > 0;
    EXPECT_EQ(scripted, one.screen.scripts);
    // What it was made from can be seen without scripts as well.
    browser->value("document.querySelector('details').open = true");
    EXPECT_EQ(browser->value("document.querySelector('details script').offsetHeight") > 20,
              !one.screen.print);
    browser->value("document.querySelector('details').open = false");
    EXPECT_TRUE(browser->save_screenshot(artifacts / (std::string(one.name) + ".png")));
  }

  // On a phone, columns that have to be scrolled to do not make rows tall.
  ASSERT_EQ(run({"compare", "--a", "echo 100", "--b", "echo 98765", "--metric", "regex:[0-9]+",
                 "--max-pairs", "7", "-o", "long", "--quiet"})
                .exit_code,
            1);
  ASSERT_EQ(run({"report", "long", "-o", "long.html"}).exit_code, 0);
  ASSERT_TRUE(browser->open(project_.path() / "long.html", {.width = 390}));
  EXPECT_LT(browser->value("Math.max(...[...document.querySelectorAll("
                           "'[aria-label=\"Goals\"] tbody tr')].map(r => r.offsetHeight))"),
            40);

  // What scripts add.
  ASSERT_TRUE(browser->open(page, {}));
  EXPECT_EQ(
      browser->value("(() => { const t = [...document.querySelectorAll('table')].pop();"
                     "t.querySelector('thead button').click();"
                     "return [...t.tBodies[0].rows].map(r => r.textContent.trim()).join() })()"),
      "1,2,10");
  EXPECT_EQ(browser->value(
                "(() => { const f = document.querySelector('[data-chart=\"loss\"]');"
                "const b = f.querySelectorAll('.toggles button')[1]; b.click();"
                "return getComputedStyle(f.querySelectorAll('g[data-series]')[1]).display })()"),
            "none");
  const Json place = browser->value(
      "(() => { const f = document.querySelector('[data-chart=\"throughput\"]');"
      "f.scrollIntoView({behavior: 'instant'}); const r = "
      "f.querySelector('.wide svg').getBoundingClientRect();"
      "return [r.left + r.width / 2, r.top + r.height / 2] })()");
  browser->move_pointer(place.at(0), place.at(1));
  EXPECT_THAT(browser
                  ->value("document.querySelector('[data-chart=\"throughput\"] .readout')"
                          ".textContent")
                  .get<std::string>(),
              ::testing::MatchesRegex("at [0-9.]+: measured [0-9.,]+"));
  EXPECT_EQ(browser->value("(() => { const a = document.querySelector('.download a'); a.click();"
                           "return a.href.startsWith('blob:') })()"),
            true);
  EXPECT_THAT(browser->errors(), IsEmpty());
}

}  // namespace
}  // namespace assay
