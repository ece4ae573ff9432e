// `assay plan` from the command line: tables, the same facts as JSON, and one line for mistakes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "base/text.h"
#include "base/units.h"
#include "support/process.h"

namespace assay {
namespace {

using base::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kJob = "nanochat-d26-h100";

support::ProcessResult plan(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {support::program(), "plan"});
  return support::run({arguments});
}

Json plan_json(std::vector<std::string> arguments, int exit_code = 0) {
  arguments.emplace_back("--json");
  const auto outcome = plan(arguments);
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  return Json::parse(outcome.out);
}

void refused(const std::vector<std::string>& arguments, const std::string& line) {
  const auto outcome = plan(arguments);
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_EQ(outcome.err, "assay: " + line + "\n");
}

TEST(PlanCli, JsonAddsUp) {
  const Json json = plan_json({kJob, "--step-time", "701.9ms"});
  EXPECT_EQ(json["steps"], 14'889);
  EXPECT_EQ(json["step_s"], 0.7019);
  EXPECT_EQ(json["step_source"], "given");
  std::int64_t bytes = 0;
  std::int64_t two_byte = 0;
  for (const Json& group : json["comm_groups"]) {
    bytes += group["bytes"]["total"].get<std::int64_t>();
    two_byte += group["two_byte_bytes"]["total"].get<std::int64_t>();
  }
  EXPECT_EQ(bytes, 11'464'134'864);
  EXPECT_EQ(bytes, json["comm"]["bytes"]["total"]);
  EXPECT_EQ(two_byte, 7'258'794'088);
  EXPECT_EQ(json["comm"]["sent_bytes_per_rank"], 10'031'118'188.0);
  std::int64_t called = 0;
  for (const Json& calls : json["collectives"]) called += calls["bytes"].get<std::int64_t>();
  EXPECT_EQ(called, bytes);
}

TEST(PlanCli, CostsAreExactDatedAndCheapestFirst) {
  const Json costs = plan_json({kJob, "--step-time", "0.7019"})["cost"];
  ASSERT_EQ(costs.size(), 9U);
  double before = 0;
  bool found = false;
  for (const Json& cost : costs) {
    EXPECT_GE(cost["cost"]["low"].get<double>(), before);
    before = cost["cost"]["low"];
    EXPECT_NE(cost["date"], "");
    if (cost["per_hour"]["low"] != 12.85) continue;
    found = true;
    EXPECT_EQ(cost["provider"], "Vast");
    EXPECT_EQ(cost["cost"]["low"], 37.302797);
  }
  EXPECT_TRUE(found);
}

TEST(PlanCli, EnergysInputsCanBeGiven) {
  const Json carbon =
      plan_json({kJob, "--set", "train.tokens_per_matmul_parameter=8.5", "--step-time", "1",
                 "--watts", "500", "--pue", "1.1", "--grid", "50"})["carbon"];
  EXPECT_DOUBLE_EQ(carbon["devices_kwh"].get<double>(), 500.0 * 8 * 14'889 / 3600 / 1000);
  EXPECT_DOUBLE_EQ(carbon["co2_kg"].get<double>(),
                   carbon["devices_kwh"].get<double>() * 1.1 * 50 / 1000);
  EXPECT_EQ(carbon["pue"]["source"], "given");
}

TEST(PlanCli, PredictsAStepWithItsIntervalAndParts) {
  const Json json = plan_json({kJob});
  const double step = json["step_s"];
  EXPECT_EQ(json["step_source"], "predicted");
  EXPECT_NEAR(step, 0.7019, 0.1 * 0.7019);  // as measured
  EXPECT_LT(json["step_low_s"].get<double>(), step);
  EXPECT_GT(json["step_high_s"].get<double>(), step);
  EXPECT_DOUBLE_EQ(json["tokens_per_s"].get<double>(), 524'288 / step);
  double parts = 0;
  for (const Json& part : json["breakdown"]) parts += part.get<double>();
  EXPECT_NEAR(parts, step, 1e-9 * step);
  const Json& memory = json["memory_gib"];
  double held = 0;
  for (const char* part : {"params", "grads", "optimizer", "activations", "workspace"}) {
    held += memory[part].get<double>();
  }
  EXPECT_NEAR(held, memory["total"].get<double>(), 1e-9 * held);
  EXPECT_GT(json["mfu"]["published"].get<double>(), json["mfu"]["current"].get<double>());
  EXPECT_NEAR(json["hours"].get<double>(), 14'889 * step / 3600, 1e-9);
  EXPECT_FALSE(json["cost"].empty());
  EXPECT_GT(json["carbon"]["co2_kg"].get<double>(), 0);
}

// The published step times and costs of three machines: within 10 %, and in their order.
TEST(PlanCli, ThreeMachinesAreRankedAsMeasured) {
  struct Machine {
    std::string job;
    double step_s = 0;
    double per_hour = 0;
  };
  double before = 0;
  for (const Machine& machine :
       {Machine{kJob, 0.7019, 12.85}, Machine{"nanochat-d26-h100-pcie", 1.4116, 19.12},
        Machine{"nanochat-d26-h100-nvl", 2.0315, 21.52}}) {
    const Json json = plan_json({machine.job});
    EXPECT_NEAR(json["step_s"].get<double>(), machine.step_s, 0.1 * machine.step_s);
    double cost = 0;
    for (const Json& offer : json["cost"]) {
      if (offer["per_hour"]["low"] == machine.per_hour) cost = offer["cost"]["low"];
    }
    EXPECT_GT(cost, before);
    before = cost;
  }
}

TEST(PlanCli, AnotherFrameworkTakesAnotherTime) {
  const double ours = plan_json({"llama3-13b-h200x32"})["step_s"];
  const double eager = plan_json({"llama3-13b-h200x32", "--framework", "torch"})["step_s"];
  EXPECT_GT(eager, ours);
  refused({kJob, "--framework", "megatron-cor"},
          "--framework: unknown framework 'megatron-cor'; did you mean 'megatron-core'?");
  const auto unknown = plan({kJob, "--framework", "foo"});
  EXPECT_EQ(unknown.exit_code, 64);
  EXPECT_THAT(unknown.err, HasSubstr("unknown framework 'foo'; one of "));
  EXPECT_THAT(unknown.err, HasSubstr("megatron-core"));
}

TEST(PlanCli, ExtrapolationsAreReported) {
  const std::vector<std::string> far = {"llama3-70b-h200x32",
                                        "--set",
                                        "cluster.nodes=25000",
                                        "--set",
                                        "cluster.max_nodes=25000",
                                        "--set",
                                        "layout.fsdp=100",
                                        "--set",
                                        "layout.dp=250"};
  const Json json = plan_json(far);
  ASSERT_FALSE(json["extrapolations"].empty());
  EXPECT_THAT(json["extrapolations"][0].get<std::string>(), HasSubstr("100,000 ranks"));
  EXPECT_THAT(plan(far).out, HasSubstr("outside the measured range: 100,000 ranks"));
}

TEST(PlanCli, AnImpossibleLayoutNamesTheNearestPossibleOne) {
  refused({"llama3-70b-h200x32", "--set", "layout.tp=3"},
          "--set layout.tp=3: layout: fsdp 8 x tp 3 = 24 ranks, but the cluster has 32 devices (8 "
          "nodes of 4); nearest valid layout: fsdp 8 x tp 4");
}

TEST(PlanCli, WhatTheTrainerRefusesIsSaidFirst) {
  const std::vector<std::string> job = {"llama3-13b-h200x32", "--set", "train.optimizer=muon"};
  const std::string line =
      "layout.tp: Muon updates whole matrices, but tensor-parallel ranks have only parts of them; "
      "set layout.tp=1, or train.optimizer=adamw";
  const auto outcome = plan(job);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nassay train cannot run this job:\n  " + line + "\n"));
  EXPECT_THAT(outcome.out,
              HasSubstr("the plan below is for software that can run it: megatron-core\n"));
  EXPECT_THAT(outcome.out, HasSubstr("run by megatron-core: "));
  auto ours = job;
  ours.insert(ours.end(), {"--framework", "assay"});
  EXPECT_THAT(plan(ours).out, HasSubstr("run by software like assay: "));
  EXPECT_EQ(plan_json(job)["refused"], line);
  EXPECT_EQ(plan_json({"llama3-13b-h200x32"})["refused"], "");
}

TEST(PlanCli, WhatDoesNotFitHasNoBill) {
  const std::vector<std::string> job = {"llama3-70b-h200x32", "--set", "layout.tp=1", "--set",
                                        "layout.fsdp=1",      "--set", "layout.dp=32"};
  const auto outcome = plan(job);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nit does NOT fit: "));
  EXPECT_THAT(outcome.out, HasSubstr("not known: time and cost: the job does not fit"));
  for (const char* told : {"provider", "\nstep ", "predicted step", "tokens/s,", "hours"})
    EXPECT_THAT(outcome.out, Not(HasSubstr(told)));
  const Json json = plan_json(job, 1);
  EXPECT_EQ(json["memory_gib"]["fit"], "does not fit");
  for (const char* key : {"step_s", "step_low_s", "step_high_s", "tokens_per_s", "mfu", "hours",
                          "breakdown", "parts", "carbon", "step_source"}) {
    EXPECT_TRUE(json.contains(key) && json[key].is_null()) << key;
  }
  EXPECT_TRUE(json["cost"].empty());
  ASSERT_FALSE(json["scaling"].empty());
  for (const Json& point : json["scaling"]) {
    if (point["fits"] == false) {
      EXPECT_TRUE(point["step_s"].is_null());
    }
  }
}

// Of other software memory is predicted: where the interval reaches beyond the card, the answer is
// open, and exit code 2 says so.
TEST(PlanCli, WhatMayNotFitIsInconclusive) {
  const std::vector<std::string> job = {"nanochat-d26-h100", "--set",
                                        "cluster.device.memory=64GiB"};
  const auto outcome = plan(job);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nit may not fit: 56.4 of 64.0 GiB per rank, interval "));
  EXPECT_THAT(outcome.out, HasSubstr("device memory 64.00 GiB: it may not fit"));
  EXPECT_THAT(outcome.out, HasSubstr("\nstep "));
  const Json json = plan_json(job, 2);
  EXPECT_EQ(json["memory_gib"]["fit"], "may not fit");
  EXPECT_GT(json["memory_gib"]["total_high"].get<double>(), 64);
  EXPECT_GT(json["hours"].get<double>(), 0);
  // Counted memory is no range.
  EXPECT_EQ(plan_json({"llama3-13b-h200x32"})["memory_gib"]["fit"], "fits");
}

TEST(PlanCli, MachinesAndGpusAreToldApart) {
  const auto two =
      plan({"llama3-13b-h200x32", "--search", "--min-devices", "8", "--max-devices", "8"});
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_THAT(two.out, ::testing::StartsWith("2 machines of 4 x NVIDIA H200 (8 GPUs), from "));
  // A machine of eight of which one GPU works: the others are in the bill, and it says so.
  const auto one = plan({"gpt2-124m-h200", "--search"});
  EXPECT_THAT(one.out, ::testing::StartsWith("1 machine of 1 x NVIDIA H200 (1 GPU), from "));
  EXPECT_THAT(one.out, HasSubstr("7 of 8 rented GPUs are paid for but idle"));
  const Json json = plan_json({"gpt2-124m-h200", "--search"});
  EXPECT_EQ(json["recommended"]["idle_devices"], 7);
  EXPECT_THAT(plan({"gpt2-124m-h200"}).out, HasSubstr("7 of 8 GPUs idle"));
}

// What is printed below the answer is a command: pasted, it plans what was recommended.
TEST(PlanCli, TheNextCommandOfASearchCanBePasted) {
  const std::vector<std::string> search = {"llama3-13b-h200x32", "--search",      "--framework",
                                           "torch-compiled",     "--max-devices", "32"};
  const auto outcome = plan(search);
  const std::string all = outcome.out + outcome.err;
  const std::size_t at = all.find("next: assay plan ");
  ASSERT_NE(at, std::string::npos) << all;
  std::string command = all.substr(at + 6);
  command = command.substr(0, command.find(", for the breakdown"));
  EXPECT_THAT(command, HasSubstr("--framework torch-compiled"));
  const std::string path = "PATH=$(dirname " + support::program() + "):$PATH; ";
  const auto planned = support::run({{"bash", "-c", path + command + " --json"}});
  // Its memory is predicted, and the interval may reach beyond the card.
  EXPECT_TRUE(planned.exit_code == 0 || planned.exit_code == 2) << command << planned.err;
  EXPECT_NEAR(Json::parse(planned.out)["step_s"].get<double>(),
              plan_json(search)["recommended"]["step_s"].get<double>(), 1e-6);
}

// A job file has no key for the software, so it says how it is to be planned.
TEST(PlanCli, AWrittenJobNamesTheSoftwareItIsFor) {
  base::testing::TempDir directory;
  const std::string file = directory.path() / "best.toml";
  const auto found =
      plan({"llama3-13b-h200x32", "--search", "--framework", "torch-compiled", "-o", file});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  const std::string command = "assay plan " + file + " --framework torch-compiled";
  EXPECT_THAT(found.out, HasSubstr(command));
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("#   " + command + "\n"));
}

TEST(PlanCli, RecomputationIsNamedAsItWasAskedFor) {
  const auto asks = [](const std::string& policy) {
    return plan(
               {"llama3-13b-h200x32", "--framework", "torch", "--set", "train.recompute=" + policy})
        .out;
  };
  EXPECT_THAT(asks("selective"), Not(HasSubstr("the job asks for")));
  EXPECT_THAT(plan({kJob, "--set", "train.recompute=full"}).out,
              HasSubstr("the job asks for train.recompute = \"full\": nanochat has no such policy; "
                        "\"none\" is the nearest"));
  EXPECT_THAT(asks("cheap"), HasSubstr("the job asks for train.recompute = \"cheap\": torch has no "
                                       "such policy; \"selective\" is the nearest"));
}

TEST(PlanCli, ALayoutThatTheSoftwareDoesNotHaveIsPlannedForOtherSoftware) {
  for (const auto& [degree, name] : {std::pair("cp", "context"), std::pair("pp", "pipeline")}) {
    std::vector<std::string> job = {kJob, "--set", fmt::format("layout={{{}=8}}", degree)};
    const std::string lacks =
        fmt::format("layout.{}: nanochat has no {} parallelism", degree, name);
    const Json json = plan_json(job);
    EXPECT_EQ(json["framework"], "megatron-core");
    EXPECT_EQ(json["framework_why"], lacks + ": megatron-core is planned");
    EXPECT_THAT(plan(job).out, HasSubstr("run by megatron-core: "));
    EXPECT_THAT(plan(job).out, HasSubstr("\n" + lacks + ": megatron-core is planned\n"));
    job.insert(job.end(), {"--framework", "nanochat"});
    refused(job, fmt::format("{}; set layout.{}=1, or name software that has it: megatron-core",
                             lacks, degree));
  }
  refused({"llama3-13b-h200x32", "--framework", "llm.c"},
          "layout.tp: llm.c has no tensor parallelism; set layout.tp=1, or name software that has "
          "it: megatron-core");
  EXPECT_EQ(plan_json({kJob})["framework_why"], "");
}

TEST(PlanCli, ASearchOffersWhatTheSoftwareHas) {
  const Json found = plan_json({kJob, "--search"});
  for (const Json& one : found["candidates"]) {
    for (const char* degree : {"tp", "pp", "cp"}) EXPECT_EQ(one["layout"][degree], 1);
  }
  EXPECT_GT(found["candidates"].size(), 0U);
  EXPECT_THAT(found["rejected"].dump(),
              HasSubstr("layout.pp: nanochat has no pipeline parallelism"));
}

TEST(PlanCli, AScheduleThatTheSoftwareDoesNotHaveIsNamed) {
  const auto asks = [](const std::string& framework) {
    return std::vector<std::string>{"llama3-13b-h200x32",
                                    "--framework",
                                    framework,
                                    "--set",
                                    "layout={pp=4,fsdp=8,pp_schedule=\"zb-h1\"}",
                                    "--set",
                                    "batch.accumulate=16"};
  };
  const std::string remark =
      "the job asks for layout.pp_schedule = \"zb-h1\": megatron-core has no such schedule; "
      "\"1f1b\" is planned";
  EXPECT_THAT(plan(asks("megatron-core")).out, HasSubstr(remark));
  EXPECT_EQ(plan_json(asks("megatron-core"))["schedule_why"], remark);
  EXPECT_EQ(plan_json(asks("torch"))["schedule_why"], "");
}

// The search's software is not what a plan of the recommended layout would take.
TEST(PlanCli, TheNextCommandNamesTheSoftwareOfTheSearch) {
  const std::vector<std::string> job = {"llama3-8b-h200", "--set", "cluster.extends=mi300x-8",
                                        "--set", "layout={fsdp=8}"};
  auto wide = job;
  wide.back() = "layout={tp=8}";
  auto search = wide;
  search.emplace_back("--search");
  const Json found = plan_json(search);
  EXPECT_EQ(found["recommended"]["layout"]["tp"], 1);
  EXPECT_THAT(plan(search).out, HasSubstr("--framework megatron-core"));
  search = job;
  search.emplace_back("--search");
  EXPECT_THAT(plan(search).out, Not(HasSubstr("--framework")));
}

// No price for these cards: the fastest layouts all the same, and no bill.
TEST(PlanCli, ASearchWithoutPricesAnswers) {
  const std::vector<std::string> job = {
      "llama3-8b-h200", "--set", "cluster.extends=h20-sxm-8", "--set", "layout.fsdp=8", "--search"};
  const auto outcome = plan(job);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("no price is known"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("$")));
  const Json json = plan_json(job);
  EXPECT_EQ(json["price_known"], false);
  EXPECT_TRUE(json["recommended"]["cost_p50"].is_null());
  EXPECT_GT(json["recommended"]["gpu_hours_p50"].get<double>(), 0);
  auto budget = job;
  budget.insert(budget.end(), {"--budget", "100"});
  EXPECT_EQ(plan(budget).exit_code, 64);
  auto late = job;
  late.insert(late.end(), {"--deadline", "30s"});
  const auto missed = plan(late);
  EXPECT_EQ(missed.exit_code, 1);
  EXPECT_THAT(missed.out, HasSubstr("nothing to recommend: no configuration meets the limits"));
  EXPECT_THAT(missed.out, ::testing::ContainsRegex("nearest +devices +GPU-hours +hours +misses"));
  EXPECT_THAT(missed.out, HasSubstr("fewest GPU-hours"));
  EXPECT_THAT(missed.out, Not(HasSubstr("$")));
}

// Prices are known, and none is in the budget's currency.
TEST(PlanCli, ABudgetInAnotherCurrencyIsTheReason) {
  const auto outcome = plan({"llama3-70b-h200x32", "--search", "--budget", "5000 EUR"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("its offers are in USD, not EUR, and no exchange rate"));
}

TEST(PlanCli, AFolderThatCannotBeWrittenIsFoundBeforeAnythingIsPrinted) {
  for (const char* search : {"", "--search"}) {
    std::vector<std::string> arguments = {kJob, "--svg", "/dev/null/charts"};
    if (*search != '\0') arguments.emplace_back(search);
    const auto outcome = plan(arguments);
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr("/dev/null/charts: cannot be written"));
  }
}

TEST(PlanCli, AFileThatCannotBeWrittenIsFoundBeforeAnythingIsComputed) {
  base::testing::TempDir directory;
  const std::string rows = directory.path() / "rows.csv";  // is read later
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"llama3-13b-h200x32", "--search"}, {"--calibrate", rows}}) {
    for (const auto& [file, says] :
         {std::pair("/dev/null/best.toml", "cannot be written"), std::pair("/", "is a folder")}) {
      auto with_output = arguments;
      with_output.insert(with_output.end(), {"-o", file});
      const auto outcome = plan(with_output);
      EXPECT_NE(outcome.exit_code, 0);
      EXPECT_THAT(outcome.out, IsEmpty());
      EXPECT_THAT(outcome.err, HasSubstr(std::string("assay: ") + file + ": " + says));
    }
  }
}

// A job file is put in the place of what is there, which must not be a pipe or a device.
TEST(PlanCli, AJobIsWrittenToARegularFileOnly) {
  base::testing::TempDir directory;
  const std::string pipe = directory.path() / "job.toml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  refused({"llama3-13b-h200x32", "--search", "-o", pipe},
          pipe + ": is not a regular file; name another file");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(PlanCli, ARunWithoutEnoughStepsIsNoMeasurement) {
  base::testing::TempDir directory;
  const std::string file = directory.path() / "metrics.jsonl";
  std::ofstream(file).flush();
  refused({kJob, "--calibrate", file},
          file + ": has no steps; give the metrics.jsonl of assay train");
  std::ofstream(file) << "{\"seconds\": 1}\n";
  refused({kJob, "--calibrate", file},
          file + ": has only 1 step, and the first 3 are warm-up; train a little longer");
}

TEST(PlanCli, EnergyIsInReadableUnits) {
  EXPECT_THAT(plan({kJob, "--step-time", "1000"}).out,
              ::testing::AllOf(HasSubstr(" MWh"), ::testing::ContainsRegex("CO2 +[0-9.]+ t")));
  EXPECT_THAT(plan({kJob, "--step-time", "100000"}).out, HasSubstr(" GWh"));
}

TEST(PlanCli, ASearchWritesTheRecommendedJob) {
  base::testing::TempDir directory;
  const std::string file = directory.path() / "best.toml";
  const auto found = plan({"llama3-13b-h200x32", "--search", "-o", file});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  const auto planned = plan({file});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("\nit fits: "));
  const auto set = plan({"llama3-13b-h200x32", "--search", "-o", file, "--set", "train.steps=7"});
  EXPECT_EQ(set.exit_code, 64);
}

// A job and what a search made of it stay together when their folder moves; a preset has no folder.
TEST(PlanCli, AWrittenJobExtendsItsJobWhereverBothAre) {
  namespace fs = std::filesystem;
  base::testing::TempDir directory;
  const fs::path folder = directory.path() / "here";
  fs::create_directories(folder / "made");
  fs::create_directories(directory.path() / "jobs");
  fs::create_directory_symlink(folder / "made", directory.path() / "linked");
  std::ofstream(folder / "job.toml") << "extends = \"llama3-13b-h200x32\"\n";
  std::ofstream(folder / "plain") << "extends = \"llama3-13b-h200x32\"\n";
  const auto extended = [&](const std::string& job, const fs::path& out) {
    const auto made = support::run(
        {{support::program(), "plan", job, "--search", "-o", out.string()}, "", folder});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    std::ifstream file(fs::absolute(folder / out));
    std::string line;
    while (std::getline(file, line) && !line.starts_with("extends = ")) continue;
    return line;
  };
  EXPECT_EQ(extended("job.toml", "best.toml"), "extends = \"job.toml\"");
  EXPECT_EQ(extended("./job.toml", "made/best.toml"), "extends = \"../job.toml\"");
  EXPECT_EQ(extended((folder / "job.toml").string(), "../jobs/best.toml"),
            "extends = \"../here/job.toml\"");
  EXPECT_EQ(extended("job.toml", "../linked/linked.toml"), "extends = \"../job.toml\"");
  EXPECT_EQ(extended("./plain", "plain.toml"), "extends = \"./plain\"");
  EXPECT_EQ(extended("llama3-13b-h200x32", "preset.toml"), "extends = \"llama3-13b-h200x32\"");
  fs::rename(folder, directory.path() / "there");
  EXPECT_EQ(plan({directory.path() / "there/made/best.toml"}).exit_code, 0);
  EXPECT_EQ(plan({directory.path() / "there/made/linked.toml"}).exit_code, 0);
}

// A single device has no shards, so the file must not say how they are made.
TEST(PlanCli, ASearchWritesJobsOfOneDeviceToo) {
  base::testing::TempDir directory;
  const std::string file = directory.path() / "best.toml";
  const auto found = plan({"moe-9b-h200", "--search", "-o", file});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  const auto planned = plan({file});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  // What could not be read is not left behind.
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    files += entry.is_regular_file() ? 1U : 0U;
  }
  EXPECT_EQ(files, 1U);
}

// Neither the job nor what it extends is lost to what would extend it.
TEST(PlanCli, ASearchDoesNotWriteOverItsJob) {
  base::testing::TempDir directory;
  const std::string base_file = directory.path() / "base.toml";
  const std::string file = directory.path() / "a \"b\".toml";
  std::ofstream(base_file) << "extends = \"llama3-13b-h200x32\"\n";
  std::ofstream(file) << "extends = \"base.toml\"\n";
  const auto text_of = [](const std::string& name) {
    std::stringstream text;
    text << std::ifstream(name).rdbuf();
    return text.str();
  };
  refused({file, "--search", "-o", file},
          "--output: is the job itself, which the new one extends; name another file");
  const auto outcome = plan({file, "--search", "-o", base_file});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("base.toml: not written: "));
  EXPECT_EQ(text_of(file), "extends = \"base.toml\"\n");
  EXPECT_EQ(text_of(base_file), "extends = \"llama3-13b-h200x32\"\n");
  // Names are quoted; what was there before is replaced.
  const std::string best = directory.path() / "best.toml";
  std::ofstream(best) << "old";
  EXPECT_EQ(plan({file, "--search", "-o", best}).exit_code, 0);
  EXPECT_EQ(plan({best}).exit_code, 0);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    files += entry.is_regular_file() ? 1U : 0U;
  }
  EXPECT_EQ(files, 3U);
}

TEST(PlanCli, TheImbalanceOfExpertsIsAnInput) {
  const std::vector<std::string> job = {"moe-9b-h200x32", "--set", "layout={ep=8,fsdp=4}"};
  const auto with = [&](const std::string& imbalance) {
    auto arguments = job;
    arguments.insert(arguments.end(), {"--imbalance", imbalance});
    return plan_json(arguments);
  };
  const Json usual = plan_json(job);
  EXPECT_EQ(usual["experts"]["imbalance"], 1.2);
  EXPECT_EQ(usual["experts"]["is_assumed"], true);
  const Json even = with("1");
  const Json uneven = with("3");
  EXPECT_EQ(uneven["experts"]["is_assumed"], false);
  EXPECT_EQ(uneven["experts"]["fullest_rank"], 3);
  EXPECT_LT(even["step_s"].get<double>(), usual["step_s"].get<double>());
  EXPECT_LT(usual["step_s"].get<double>(), uneven["step_s"].get<double>());
  // There is room for the worst case in any case.
  EXPECT_EQ(even["memory_bytes"]["total"], uneven["memory_bytes"]["total"]);
  EXPECT_THAT(even["room_for_experts"].get<std::string>(), HasSubstr("planned for the worst case"));
  auto text = job;
  text.insert(text.end(), {"--imbalance", "3"});
  EXPECT_THAT(plan(text).out, HasSubstr("the most loaded expert has 3 times an even share"));
  EXPECT_THAT(plan(text).out, HasSubstr("planned for the worst case"));
  // That of other software is in its constants.
  auto other = job;
  other.insert(other.end(), {"--framework", "megatron-core"});
  const auto contained = plan(other);
  EXPECT_THAT(contained.out, HasSubstr("imbalance is contained in the measured runs"));
  EXPECT_THAT(contained.out, Not(HasSubstr("times an even share")));
  refused({"moe-9b-h200x32", "--imbalance", "0.5"},
          "--imbalance: '0.5' is not a number from 1 to 1,000");
  refused({"llama3-8b-h200", "--imbalance", "1.5"},
          "--imbalance: applies to experts, but the model has none; leave it out, or set "
          "model.experts");
}

// Several machines of an offer are of use where something connects them.
TEST(PlanCli, OffersOfSeveralMachinesNeedANetwork) {
  const Json json = plan_json({"llama3-70b-h200x32"});
  ASSERT_FALSE(json["cost"].empty());
  for (const Json& offer : json["cost"]) EXPECT_EQ(offer["provider"], "AWS");
  const Json search = plan_json({"llama3-70b-h200x32", "--search"});
  for (const Json& one : search["candidates"]) {
    if (one["rented"] > 1) {
      EXPECT_EQ(one["provider"], "AWS");
    }
  }
  EXPECT_THAT(search["rejected"].dump(),
              HasSubstr("price: no network is known between machines of"));
}

TEST(PlanCli, DrawsPictures) {
  base::testing::TempDir directory;
  const std::string folder = directory.path() / "new" / "pictures";
  const auto outcome = plan({"llama3-13b-h200x32", "--svg", folder});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(plan({"llama3-13b-h200x32", "--search", "--svg", folder}).exit_code, 0);
  for (const char* file : {"breakdown.svg", "scaling.svg", "pareto.svg"}) {
    std::ifstream stream(folder + "/" + file);
    std::stringstream text;
    text << stream.rdbuf();
    EXPECT_THAT(text.str(), ::testing::StartsWith("<svg")) << file;
  }
}

TEST(PlanCli, SearchesUnderLimits) {
  const Json json = plan_json({"llama3-70b-h200x32", "--search", "--deadline", "30d"});
  EXPECT_GT(json["considered"].get<std::int64_t>(), 10'000);
  ASSERT_FALSE(json["front"].empty());
  double cost = 1e300;
  for (const Json& one : json["front"]) {  // by time: each must be cheaper than those before
    EXPECT_LT(one["cost_p50"]["high"].get<double>(), cost);
    cost = one["cost_p50"]["high"];
    EXPECT_GE(one["hours_p90"].get<double>(), one["hours_p50"].get<double>());
  }
  EXPECT_FALSE(json["rejected"].empty());
  EXPECT_FALSE(json["assumptions"].empty());
  const auto none = plan({"llama3-70b-h200x32", "--search", "--budget", "0.01"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.out, HasSubstr("budget"));
  refused({"llama3-70b-h200x32", "--deadline", "3d"},
          "--deadline: does not apply to one plan; use it with --search");
  refused({"llama3-70b-h200x32", "--search", "--deadline", "48"},
          "--deadline: '48' has no unit; for example 48h or 48d");
  refused({"llama3-70b-h200x32", "--search", "--max-devices", "many"},
          "--max-devices: 'many' is not a whole number of at least 1");
  refused({"llama3-70b-h200x32", "--memory", "40GiB"},
          "--memory: does not apply to one plan; use it with --search");
  refused({"llama3-70b-h200x32", "--search", "--memory", "0B"}, "--memory: must be greater than 0");
}

// What excluded everything is named, and where else one may search.
TEST(PlanCli, ASearchThatFindsNothingNamesTheOptionsThatWouldHelp) {
  const auto why = [](std::vector<std::string> options) {
    options.insert(options.begin(),
                   {"llama3-70b-h200x32", "--search", "--set", "train.tokens=1e11"});
    const auto outcome = plan(options);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    const std::string line = outcome.out.substr(0, outcome.out.find('\n'));
    EXPECT_EQ("nothing to recommend: " + plan_json(options, 1)["why"].get<std::string>(), line);
    return line;
  };
  constexpr const char* kElsewhere =
      "; this is the job's own cluster, --everywhere searches all cluster presets";
  EXPECT_EQ(why({"--max-devices", "4"}),
            std::string("nothing to recommend: the job does not fit on any of the machines within "
                        "--max-devices 4") +
                kElsewhere);
  EXPECT_EQ(why({"--memory", "1GiB"}),
            std::string("nothing to recommend: the job does not fit on any of the machines within "
                        "--memory 1.00 GiB") +
                kElsewhere);
  EXPECT_EQ(why({"--memory", "1GiB", "--max-devices", "4", "--everywhere"}),
            "nothing to recommend: the job does not fit on any of the machines within "
            "--max-devices 4 and --memory 1.00 GiB");
  EXPECT_EQ(why({"--max-devices", "7", "--min-devices", "5"}),
            std::string("nothing to recommend: no number of machines is within --min-devices 5 and "
                        "--max-devices 7") +
                kElsewhere);
  EXPECT_THAT(why({"--budget", "0.01"}), HasSubstr(kElsewhere));
}

TEST(PlanCli, ASearchUsesNoMoreMemoryThanItMay) {
  const auto largest = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"llama3-13b-h200x32", "--search", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json json = Json::parse(plan(arguments).out);
    double most = 0;
    for (const Json& one : json["candidates"]) {
      most = std::max(most, one["memory_gib"].get<double>());
    }
    return most;
  };
  EXPECT_GT(largest({}), 40);
  const double limited = largest({"--memory", "40GiB"});
  EXPECT_GT(limited, 10);
  EXPECT_LE(limited, 40);
}

constexpr const char* kColumns =
    "id,source,model,params,layers,dim,ffn,heads,kv_heads,vocab,seq,micro_batch,grad_accum,gpus,"
    "gpus_per_node,gpu_type,intra_bw,inter_bw,dp,fsdp,tp,pp,ep,ac,precision,compile,tok_per_s,"
    "step_s,mfu_pct,mem_gb,notes\n";
constexpr const char* kGoodRow =
    "good,me,gpt2,124439808,12,768,3072,12,12,50304,1024,64,8,8,8,H100-SXM5-80GB,450,,8,1,1,1,1,"
    "none,bf16,yes,,0.25,,,\n";

TEST(PlanCli, RowsArePredictedAndNonsenseGetsAReason) {
  base::testing::TempDir directory;
  const std::string file = directory.path() / "rows.csv";
  std::ofstream(file)
      << kColumns << kGoodRow
      << "bad,me,gpt2,,12,-768,,12,12,,1024,64,8,8,8,H100-SXM5-80GB,,,8,1,1,1,1,,"
         "bf16,yes,,0.1,,,\n"
      << "short,me\n"
      << "far,me,gpt2,124439808,12,768,3072,12,12,50304,1024,64,8,99968,8,H100,450,,"
         "99968,1,1,1,1,none,bf16,yes,,,,,\n"
      << "lost,me,gpt2,124439808,12,768,3072,12,12,50304,1024,64,8,8,8,H100-SXM5-80GB,450,,8,1,1,1,"
         "1,none,bf16,yes,,nan,,,\n"
      << "open,me,\"gpt2\n";
  const auto outcome = plan({"--rows", file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "id,step_s,pred_step_s,pred_low,pred_high,pred_mem_gb,reason");
  std::getline(lines, line);
  EXPECT_THAT(line, ::testing::MatchesRegex("good,0\\.25(,[0-9.]+)+,.*"));
  std::getline(lines, line);
  EXPECT_THAT(line, ::testing::AllOf(::testing::StartsWith("bad,0.1,,,,,"), HasSubstr("dim")));
  std::getline(lines, line);
  EXPECT_THAT(line, ::testing::StartsWith("short,,,,,,"));
  std::getline(lines, line);
  EXPECT_THAT(line, HasSubstr("outside the measured range: 99,968 ranks"));
  std::getline(lines, line);
  EXPECT_THAT(line, HasSubstr("step_s: 'nan' is not a time: the row is not scored by it"));
  std::getline(lines, line);
  EXPECT_EQ(line, "open,,,,,,a quote is not closed");
  EXPECT_THAT(outcome.err, HasSubstr("step time: mean error"));
  EXPECT_THAT(outcome.err, HasSubstr("80 % intervals"));
  const Json json = plan_json({"--rows", file});
  EXPECT_EQ(json["rows"].size(), 6U);
  EXPECT_EQ(json["summary"]["step_time"]["rows"], 1);
}

TEST(PlanCli, CalibratesToRowsAndToOwnRuns) {
  base::testing::TempDir directory;
  const std::string rows = directory.path() / "rows.csv";
  const std::string made = directory.path() / "made.json";
  std::ofstream(rows) << kColumns << kGoodRow;
  const auto outcome = plan({"--calibrate", rows, "-o", made});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json before = plan_json({kJob});
  EXPECT_NE(plan_json({kJob, "--constants", made})["step_s"], before["step_s"]);

  // A run of the job itself that took a tenth longer.
  const std::string run = directory.path() / "metrics.jsonl";
  std::ofstream stream(run);
  for (int i = 0; i < 9; ++i) {
    stream << R"({"step":)" << i << R"(,"seconds":)" << before["step_s"].get<double>() * 1.1
           << "}\n";
  }
  stream.close();
  EXPECT_EQ(plan({kJob, "--calibrate", run, "-o", made}).exit_code, 0);
  EXPECT_NEAR(plan_json({kJob, "--constants", made})["step_s"].get<double>(),
              before["step_s"].get<double>() * 1.1, 0.01 * before["step_s"].get<double>());
  EXPECT_EQ(plan({kJob, "--constants", run}).exit_code, 64);
  EXPECT_EQ(plan({kJob, "--calibrate", rows}).exit_code, 64);
}

// The panel's error is the shipped constants' and no other's.
TEST(PlanCli, ErrorsThatAreToldAreThoseOfTheConstantsInUse) {
  EXPECT_THAT(plan({kJob}).out, HasSubstr("22 projects held out of all fits"));
  base::testing::TempDir directory;
  const std::string rows = directory.path() / "rows.csv";
  const std::string made = directory.path() / "made.json";
  std::ofstream(rows) << kColumns << kGoodRow;
  const auto fitted = plan({"--calibrate", rows, "-o", made});
  EXPECT_THAT(fitted.err, HasSubstr("which were fitted to these rows"));
  const auto outcome = plan({kJob, "--constants", made});
  EXPECT_THAT(outcome.out, Not(HasSubstr("held out of all fits")));
  EXPECT_THAT(outcome.out, HasSubstr("fitted to 1 row of 1 project"));
  EXPECT_THAT(plan_json({kJob, "--constants", made})["known_errors"].get<std::string>(),
              HasSubstr("made.json"));
  // Rows of the very project that the constants were fitted to, and others.
  EXPECT_THAT(plan({"--rows", rows, "--constants", made}).err,
              HasSubstr("the constants were fitted to the projects of 1 of 1 row (me)"));
  EXPECT_THAT(plan({"--rows", rows}).err,
              HasSubstr("the constants were fitted to none of the projects"));
  EXPECT_THAT(plan({"--rows", rows}).err, HasSubstr("dense models, 1 project: mean"));
  // No row gives its memory.
  const Json summary = plan_json({"--rows", rows})["summary"];
  EXPECT_EQ(summary["memory"]["rows"], 0);
  EXPECT_TRUE(summary["memory"]["mean_abs_pct_error"].is_null());
  EXPECT_TRUE(summary["step_time"]["mean_abs_pct_error"].is_number());
}

// The interval of memory is that of the rows the constants were fitted to; where there is none, it
// says whose it is.
TEST(PlanCli, TheIntervalOfMemoryIsThatOfTheConstantsInUse) {
  base::testing::TempDir directory;
  const std::string rows = directory.path() / "rows.csv";
  const std::string made = directory.path() / "made.json";
  const std::string plain(kGoodRow);
  std::ofstream stream(rows);
  stream << kColumns;
  for (const auto& [project, memory] :
       {std::pair("me", "40"), std::pair("you", "50"), std::pair("them", "60")}) {
    std::string row = plain;
    row.replace(row.find(",me,"), 4, fmt::format(",{},", project));
    row.replace(row.find(",,,\n"), 4, fmt::format(",,{},GiB peak allocated\n", memory));
    stream << row;
  }
  stream.close();
  EXPECT_EQ(plan({"--calibrate", rows, "-o", made}).exit_code, 0);
  const std::vector<std::string> job = {kJob, "--constants", made};
  std::stringstream text;
  text << std::ifstream(made).rdbuf();
  Json file = Json::parse(text.str());
  const Json needed = file["memory_intervals"]["needed"];
  EXPECT_EQ(needed["rows"], 3);
  EXPECT_EQ(needed["projects"], 3);
  const auto memory_of = [&] {
    const auto outcome = plan({kJob, "--constants", made, "--json"});
    return Json::parse(outcome.out)["memory_gib"];
  };
  const Json own = memory_of();
  EXPECT_NEAR(own["total_high"].get<double>(),
              own["total"].get<double>() * needed["high"].get<double>(), 1e-9);
  EXPECT_NEAR(own["total_low"].get<double>(),
              own["total"].get<double>() * needed["low"].get<double>(), 1e-9);
  EXPECT_EQ(own["interval_from"], made);
  EXPECT_THAT(plan(job).out, HasSubstr("is needed (3 runs of 3 projects);"));
  // nvidia-smi's is not in these rows.
  EXPECT_THAT(plan(job).out,
              HasSubstr("(29 runs of 3 projects)\n  the second is of the shipped constants\n"));
  // A file from before it was recorded.
  file.erase("memory_intervals");
  std::ofstream(made) << file;
  EXPECT_THAT(plan(job).out,
              ::testing::AllOf(HasSubstr("is needed (45 runs of 2 projects);"),
                               HasSubstr("\n  both are of the shipped constants\n")));
  EXPECT_EQ(memory_of()["interval_from"], "the shipped constants");
  EXPECT_THAT(plan({kJob, "--constants", made, "--search"}).out,
              HasSubstr("(45 runs of 2 projects, of the shipped constants)"));
  EXPECT_THAT(plan({kJob}).out, Not(HasSubstr("of the shipped constants")));
}

TEST(PlanCli, UnknownPartsAreReportedBesideKnownOnes) {
  base::testing::TempDir directory;
  const std::string file = directory.path() / "job.toml";
  std::ofstream(file) << "[model]\nextends = \"tiny\"\n[train]\nsteps = 10\n"
                         "[cluster]\ndevices_per_node = 1\n"
                         "[cluster.device]\nname = \"Abacus\"\nbf16 = \"1 TFLOP/s\"\n";
  const Json json = plan_json({file, "--step-time", "1"});
  ASSERT_EQ(json["unknown"].size(), 3U);
  EXPECT_THAT(json["unknown"][0].get<std::string>(),
              HasSubstr("no data sheet is known for 'Abacus'"));
  EXPECT_EQ(json["unknown"][1],
            "price: no price is known for 'Abacus'; add a [[price]] to the job; its keys: assay "
            "presets keys price");
  EXPECT_THAT(json["unknown"][2].get<std::string>(), HasSubstr("cluster.device.power"));
  EXPECT_TRUE(json["cost"].empty());
  EXPECT_NEAR(json["hours"].get<double>(), 10.0 / 3600, 1e-12);
}

// On a CPU nothing is predicted, but a measured step can be priced.
TEST(PlanCli, AGivenStepNeedsNoPrediction) {
  const Json json = plan_json({"demo", "--step-time", "2"});
  EXPECT_EQ(json["step_s"], 2);
  EXPECT_FALSE(json.contains("predicted"));
  EXPECT_GT(json["hours"].get<double>(), 0);
}

TEST(PlanCli, AGivenStepTakesThePlaceOfThePredictedOne) {
  const Json json = plan_json({kJob, "--step-time", "0.3"});
  EXPECT_EQ(json["step_low_s"], 0.3);
  EXPECT_NEAR(json["tokens_per_s"].get<double>(), 524'288 / 0.3, 1);
  EXPECT_GT(json["predicted"]["step_s"].get<double>(), 0.6);
  const std::string text = plan({kJob, "--step-time", "0.3"}).out;
  EXPECT_THAT(text, HasSubstr("\n\nstep 0.3 s, as given; 1,747,627 tokens/s (predicted: 0.7"));
  EXPECT_THAT(plan({"demo", "--step-time", "2"}).out,
              HasSubstr("\nstep 2 s, as given; 1,024 tokens/s\n"));
}

// Not cut off: pages of `assay report` and JSON readers round as well.
TEST(PlanCli, RatesAreRounded) {
  const Json json = plan_json({kJob});
  const double rate = json["tokens_per_s"];
  const auto text = [](double value) { return base::grouped(std::llround(value)); };
  EXPECT_THAT(plan({kJob}).out, HasSubstr("run by nanochat: " + text(rate) + " tokens/s, " +
                                          text(rate / 8) + " per device\n"));
  for (const Json& point : json["scaling"]) {
    EXPECT_THAT(plan({kJob}).out, HasSubstr(" " + text(point["tokens_per_s"]) + " "));
  }
}

TEST(PlanCli, TablesFitAHundredColumns) {
  for (const char* job : {kJob, "llama3-70b-h200x32", "moe-9b-h200x32", "llama3-13b-h200x32"}) {
    std::istringstream lines(plan({job, "--step-time", "0.7019"}).out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(base::display_width(line), 100U) << line;
    }
  }
}

TEST(PlanCli, MistakesAreOneLine) {
  refused({"llama3-8b"},
          "llama3-8b: is a model, not a job; a job has a [model] and a [batch] or [train]");
  refused({kJob, "--step-time", "0"}, "--step-time: must be greater than 0, got '0'");
  refused({kJob, "--step-time", "1e300"},
          "--step-time: '1e300' is too long for one step; give the time of one optimizer step, in "
          "seconds");
  refused({kJob, "--step-time", "1", "--pue", "0.9"}, "--pue: '0.9' is not a number from 1 to 100");
  refused({}, "plan: no job given; give a JOB, or --rows FILE, or --calibrate FILE");
  refused({kJob, "--rows", "a.csv"},
          "plan: takes only one of JOB, --rows and --calibrate; give a JOB, or --rows FILE, or "
          "--calibrate FILE");
  refused({kJob, "--set", "layout.fsdp=3"},
          "presets/jobs/nanochat-d26-h100.toml:17: layout: fsdp 3 = 3 ranks, but the cluster has 8 "
          "devices (1 node of 8); nearest valid layout: dp 2 x fsdp 4 zero 2");
}

TEST(PlanCli, AJobWithoutALengthCannotBePriced) {
  base::testing::TempDir directory;
  const std::string file = directory.path() / "job.toml";
  std::ofstream(file) << "[model]\nextends = \"tiny\"\n[cluster]\nextends = \"h100-sxm-8\"\n";
  EXPECT_EQ(plan({file}).exit_code, 0);
  const auto outcome = plan({file, "--step-time", "1"});
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.err, HasSubstr("has no training length; set train.steps"));
}

}  // namespace
}  // namespace assay
