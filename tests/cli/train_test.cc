// The verbs `assay train` and `assay generate`: recorded, killed and resumed, stopped by signals,
// refused with one line.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::HasSubstr;

const std::vector<std::string> kSmall = {
    "model.dim=32",   "model.layers=2",       "model.heads=4",      "model.kv_heads=2",
    "model.ffn=64",   "model.context=32",     "batch.sequence=32",  "batch.micro_batch=4",
    "train.steps=12", "train.warmup_steps=2", "checkpoint.every=1", "checkpoint.keep=3"};

class TrainCli : public ::testing::Test {
 protected:
  std::vector<std::string> arguments(std::vector<std::string> more) const {
    std::vector<std::string> list = {support::program(), "train", "demo", "--device", "cpu"};
    for (const std::string& set : kSmall) list.insert(list.end(), {"--set", set});
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }
  support::ProcessResult train(std::vector<std::string> more) {
    return support::run({arguments(std::move(more)), "", directory_.path()});
  }
  std::string content(const fs::path& path) {
    std::ifstream file(directory_.path() / path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  Json json_of(std::vector<std::string> command) {
    command.insert(command.begin(), support::program());
    return Json::parse(support::run({command, "", directory_.path()}).out);
  }
  // Starts training in the background and returns its pid.
  pid_t start(std::vector<std::string> more) {
    const std::vector<std::string> list = arguments(std::move(more));
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::setpgid(0, 0);
    const int null = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) ::dup2(null, fd);
    replace_with(list);
  }
  // Of a child: becomes this program, in the test's directory.
  [[noreturn]] void replace_with(const std::vector<std::string>& list) {
    if (::chdir(directory_.path().c_str()) != 0) ::_exit(99);
    std::vector<char*> pointers;
    for (const std::string& word : list) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    ::execv(pointers[0], pointers.data());
    ::_exit(98);
  }

  base::testing::TempDir directory_;
};

TEST_F(TrainCli, IsARecordedRunWhoseWeightsHaveLineage) {
  const auto outcome = train({"--out", "run", "--stop-after", "3"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("activations"));
  EXPECT_THAT(outcome.out, HasSubstr("step  3/12  loss "));
  const auto shown =
      support::run({{support::program(), "show", "last", "--json"}, "", directory_.path()});
  const Json run = Json::parse(shown.out);
  EXPECT_TRUE(run["run"]["complete"].get<bool>());
  bool weights = false;
  for (const Json& output : run["outputs"]) {
    const auto path = output["path"].get<std::string>();
    weights = weights || path.ends_with("run/checkpoints/step-3/weights.safetensors");
  }
  EXPECT_TRUE(weights) << shown.out;
  const std::string metrics = content("run/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3);
  EXPECT_EQ(Json::parse(metrics.substr(0, metrics.find('\n')))["step"], 1);

  const auto generated = support::run({{support::program(), "generate", "run", "--prompt", "The ",
                                        "--tokens", "8", "--seed", "5", "--json"},
                                       "",
                                       directory_.path()});
  ASSERT_EQ(generated.exit_code, 0) << generated.err;
  EXPECT_EQ(Json::parse(generated.out)["tokens"].size(), 8U);

  // Whatever takes checkpoints takes the run's folder.
  EXPECT_EQ(json_of({"checkpoint", "list", "run", "--json"}),
            json_of({"checkpoint", "list", "run/checkpoints", "--json"}));
  const Json verified = json_of({"checkpoint", "verify", "run/", "--json"})["checkpoints"];
  ASSERT_FALSE(verified.empty());
  EXPECT_TRUE(verified.back()["ok"].get<bool>());
  EXPECT_EQ(json_of({"checkpoint", "export-hf", "run", "hf", "--json"})["from"],
            verified.back()["folder"]);
}

TEST_F(TrainCli, KilledAtAnyMomentItResumesToTheSameWeights) {
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(train({"--out", "whole", "--quiet"}).exit_code, 0);
  const auto whole = std::chrono::steady_clock::now() - began;  // as fast as this machine is now
  const std::string expected = content("whole/checkpoints/step-12/weights.safetensors");
  ASSERT_FALSE(expected.empty());
  const int kills = support::program_is_sanitized() ? 4 : 50;
  std::mt19937 random(7);
  int done = 0;
  for (int round = 0; done < kills; ++round) {
    const std::string out = fmt::format("run-{}", round);
    // Several kills per run, until one reaches the end.
    for (;;) {
      const pid_t child = start({"--out", out, "--resume-or-start", "--quiet"});
      std::this_thread::sleep_for(whole * (random() % 1000) / 1000);
      if (::waitpid(child, nullptr, WNOHANG) == child) break;
      ::kill(-child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      if (++done >= kills) break;
    }
    const auto last = train({"--out", out, "--resume-or-start", "--quiet"});
    ASSERT_EQ(last.exit_code, 0) << last.err;
    ASSERT_EQ(content(out + "/checkpoints/step-12/weights.safetensors"), expected) << out;
  }
}

TEST_F(TrainCli, TheStoreHasWhatTheFileHas) {
  ASSERT_EQ(train({"--out", "first", "--stop-after", "1", "--quiet"}).exit_code, 0);
  const std::vector<std::string> validated = {"--out", "run",
                                              "--set", "train.validate_every=2",
                                              "--set", "train.validate_tokens=100",
                                              "--set", "data.validation=first/built-in.tokens"};
  std::vector<std::string> stopped = validated;
  stopped.insert(stopped.end(), {"--stop-after", "5"});
  const auto outcome = train(stopped);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("validation after step 4: loss "));
  // Lines of the file by step: a validation has its own line.
  const auto compare = [&](const std::string& run, std::size_t from, std::int64_t first,
                           std::int64_t last) {
    std::map<std::int64_t, Json> expected;
    std::istringstream lines(content("run/metrics.jsonl").substr(from));
    for (std::string line; std::getline(lines, line);) {
      const Json row = Json::parse(line);
      expected[row["step"].get<std::int64_t>()].update(row);
    }
    ASSERT_EQ(expected.size(), static_cast<std::size_t>(last - first + 1));
    EXPECT_EQ(expected[last % 2 == 0 ? last : last - 1].contains("validation_loss"), true);
    const Json shown = json_of({"show", run, "--metrics", "--json"});
    ASSERT_EQ(shown["sources"].size(), 1U);
    const Json& rows = shown["sources"][0]["rows"];
    ASSERT_EQ(rows.size(), expected.size());
    for (const Json& row : rows) EXPECT_EQ(row, expected[row["step"].get<std::int64_t>()]);
    const Json whole = json_of({"show", run, "--json"});
    for (const Json& series : whole["metrics"]) {
      if (series["name"] != "loss") continue;
      EXPECT_EQ(series["first_step"], first);
      EXPECT_EQ(series["last"], expected[last]["loss"]);
    }
  };
  compare("last", 0, 1, 5);
  EXPECT_THAT(support::run({{support::program(), "show"}, "", directory_.path()}).out,
              HasSubstr("metrics of steps 1 to 5 "));

  // Resuming is another recorded run, with its own steps.
  const std::size_t written = content("run/metrics.jsonl").size();
  std::vector<std::string> resumed = validated;
  resumed.emplace_back("--resume");
  ASSERT_EQ(train(resumed).exit_code, 0);
  compare("last", written, 6, 12);
}

TEST_F(TrainCli, OneTrainerHasAFolder) {
  const pid_t child = start({"--out", "run", "--set", "train.steps=100000", "--quiet"});
  for (int i = 0; i < 1000 && content("run/metrics.jsonl").empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--resume-or-start"}}) {
    std::vector<std::string> list = {"--out", "run"};
    list.insert(list.end(), how.begin(), how.end());
    const auto second = train(list);
    EXPECT_EQ(second.exit_code, 3) << second.err;
    EXPECT_THAT(second.err, HasSubstr("assay: run: another trainer is running in this folder"));
  }
  ::kill(-child, SIGTERM);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(TrainCli, ResumingSaysFromWhere) {
  const auto nothing = train({"--out", "run", "--resume"});
  EXPECT_EQ(nothing.exit_code, 64);
  EXPECT_THAT(nothing.err, HasSubstr("run: has no checkpoint to resume"));
  EXPECT_FALSE(fs::exists(directory_.path() / "run"));
  ASSERT_EQ(train({"--out", "run", "--stop-after", "3", "--quiet"}).exit_code, 0);
  const auto rest = train({"--out", "run", "--resume"});
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("resuming after step 3: run/checkpoints/step-3\n"));
  const std::string before = content("run/metrics.jsonl");
  const auto finished = train({"--out", "run", "--resume"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("already finished: run/checkpoints/step-12"));
  EXPECT_THAT(finished.out, ::testing::Not(HasSubstr("loss")));
  EXPECT_EQ(content("run/metrics.jsonl"), before);
}

// Steps after the checkpoint were made, their lines written, and the last one only half.
TEST_F(TrainCli, MetricsOfStepsThatAreMadeAgainAreReplaced) {
  ASSERT_EQ(train({"--out", "run", "--stop-after", "4", "--quiet"}).exit_code, 0);
  const std::string four = content("run/metrics.jsonl");
  std::ofstream(directory_.path() / "run/metrics.jsonl", std::ios::app)
      << "{\"step\": 5, \"loss\": 99}\n{\"step\": 6, \"lo";
  ASSERT_EQ(train({"--out", "run", "--resume", "--quiet"}).exit_code, 0);
  std::istringstream lines(content("run/metrics.jsonl"));
  int step = 0;
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(Json::parse(line)["step"], ++step);
  EXPECT_EQ(step, 12);
  EXPECT_TRUE(content("run/metrics.jsonl").starts_with(four));
}

// Of a run whose checkpoints were moved away.
TEST_F(TrainCli, MetricsOfAnEarlierRunAreKept) {
  ASSERT_EQ(train({"--out", "run", "--stop-after", "3", "--quiet"}).exit_code, 0);
  const std::string earlier = content("run/metrics.jsonl");
  fs::rename(directory_.path() / "run/checkpoints", directory_.path() / "elsewhere");
  ASSERT_EQ(train({"--out", "run", "--stop-after", "2", "--quiet"}).exit_code, 0);
  EXPECT_EQ(content("run/metrics.1.jsonl"), earlier);
  std::istringstream lines(content("run/metrics.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  EXPECT_EQ(count, 2);
}

TEST_F(TrainCli, WhatHasStoppedAlreadyGoesNoFurther) {
  ASSERT_EQ(train({"--out", "run", "--stop-after", "3", "--quiet"}).exit_code, 0);
  ASSERT_EQ(train({"--out", "run", "--resume", "--stop-after", "3", "--quiet"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(directory_.path() / "run/checkpoints/step-3"));
  EXPECT_FALSE(fs::exists(directory_.path() / "run/checkpoints/step-4"));
}

TEST_F(TrainCli, AFailedStartLeavesNoFolder) {
  for (const std::string ranks : {"1", "2"}) {
    const auto failed = train({"--out", "new/deep/run", "--set", "data.train=missing.tokens",
                               "--set", "layout.dp=" + ranks});
    EXPECT_NE(failed.exit_code, 0);
    EXPECT_THAT(failed.err, HasSubstr("missing.tokens"));
    EXPECT_FALSE(fs::exists(directory_.path() / "new")) << ranks;
  }
  EXPECT_EQ(train({"--out", "new/deep/", "--resume"}).exit_code, 64);
  EXPECT_FALSE(fs::exists(directory_.path() / "new"));
  // One that was there stays, with what is in it.
  fs::create_directories(directory_.path() / "mine");
  std::ofstream(directory_.path() / "mine/notes.txt") << "of a person";
  EXPECT_NE(train({"--out", "mine", "--set", "data.train=missing.tokens"}).exit_code, 0);
  EXPECT_EQ(content("mine/notes.txt"), "of a person");
}

// A report compares with what was predicted when training started, whatever the job says later.
TEST_F(TrainCli, ThePlanIsStoredWhenTrainingStarts) {
  const auto write_job = [&](int layers) {
    std::ofstream(directory_.path() / "mine.toml") << fmt::format(
        "extends = \"demo\"\n[model]\ndim = 32\nlayers = {}\nheads = 4\nkv_heads = 2\nffn = 64\n"
        "context = 32\n[batch]\nsequence = 32\nmicro_batch = 4\n[train]\nsteps = 2\n"
        "warmup_steps = 1\n",
        layers);
  };
  write_job(2);
  const auto outcome = support::run(
      {{support::program(), "train", "mine.toml", "--device", "cpu", "--out", "run", "--json"},
       "",
       directory_.path()});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json printed = Json::parse(outcome.out.substr(0, outcome.out.find('\n')));
  ASSERT_EQ(printed["event"], "plan");
  write_job(8);
  for (const bool there : {true, false}) {
    if (!there) fs::remove(directory_.path() / "mine.toml");
    const Json predicted = json_of({"report", "--format", "json"})["parts"][0]["data"]["predicted"];
    EXPECT_EQ(predicted["memory_bytes"], printed["planned_bytes"]);
    EXPECT_TRUE(predicted["step_s"].is_null());
    EXPECT_THAT(predicted["source"].get<std::string>(),
                HasSubstr("planned when the run started, 20"));
  }
}

TEST_F(TrainCli, RunByItselfItNeedsNoStore) {
  std::vector<std::string> list = arguments({"--out", "alone", "--stop-after", "2"});
  list[0] = (fs::path(support::program()).parent_path() / "assay-train").string();
  const auto outcome = support::run({list, "", directory_.path()});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_FALSE(fs::exists(directory_.path() / ".assay"));
}

TEST_F(TrainCli, AKilledRunKeepsItsMetrics) {
  const pid_t child = start({"--out", "killed", "--set", "train.steps=1000000", "--set",
                             "checkpoint.every=1000000", "--quiet"});
  const auto rows = [&] {
    const std::string text = content("killed/metrics.jsonl");
    std::vector<Json> list;
    std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
    for (std::string line; std::getline(lines, line);) list.push_back(Json::parse(line));
    return list;
  };
  const auto stored = [&] {
    const Json shown = json_of({"show", "last", "--metrics", "--json"});
    return shown.value("/sources/0/rows"_json_pointer, Json::array());
  };
  // What the file has now is in the store soon after, while training goes on.
  std::vector<Json> written;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (written.empty() || stored().empty() ||
         stored().back()["step"].get<int>() < written.back()["step"].get<int>()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0);
    if (written.empty()) written = rows();
  }
  ::kill(-child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const Json kept = stored();
  ASSERT_GE(kept.size(), written.size());
  EXPECT_EQ(kept.front(), rows().front());
  EXPECT_EQ(kept[written.size() - 1], written.back());
}

TEST_F(TrainCli, JsonIsOneDocumentPerLine) {
  const auto outcome = train({"--out", "run", "--stop-after", "3", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<Json> documents;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    documents.push_back(Json::parse(line, nullptr, false));
    ASSERT_TRUE(documents.back().is_object()) << line;
  }
  const Json& plan = documents.front();
  EXPECT_EQ(plan["event"], "plan");
  EXPECT_EQ(plan["tokens_per_step"], 128);
  std::int64_t sum = 0;
  for (const auto& [kind, bytes] : plan["bytes"].items()) sum += bytes.get<std::int64_t>();
  EXPECT_EQ(plan["planned_bytes"], sum);
  const Json& result = documents.back();
  EXPECT_EQ(result["event"], "result");
  EXPECT_EQ(result["steps_done"], 3);
  EXPECT_EQ(result["planned_bytes"], sum);
  EXPECT_GT(result["measured_bytes"], 0);
  std::map<std::string, int> events;
  for (const Json& document : documents) ++events[document["event"].get<std::string>()];
  EXPECT_EQ(events["step"], 3);
  EXPECT_GE(events["saved"], 1);
}

TEST_F(TrainCli, SignalsFinishTheStepAndSave) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGHUP}) {
    const std::string out = fmt::format("signal-{}", signal);
    const pid_t child = start({"--out", out, "--set", "train.steps=100000", "--quiet"});
    while (!fs::exists(directory_.path() / out / "checkpoints" / "step-2")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0);
    }
    ::kill(child, signal);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    const auto checked =
        support::run({{support::program(), "checkpoint", "verify", out + "/checkpoints"},
                      "",
                      directory_.path()});
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
  }
}

// The only checkpoint is the one that the end of the terminal makes.
TEST_F(TrainCli, AClosedTerminalSavesToo) {
  const std::vector<std::string> list = arguments(
      {"--out", "run", "--set", "train.steps=100000", "--set", "checkpoint.every=100000"});
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) replace_with(list);
  ASSERT_GT(child, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (content("run/metrics.jsonl").find('\n') == std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0);
  }
  ::close(terminal);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;  // not with 0: the summary could not be printed
  const std::string metrics = content("run/metrics.jsonl");
  const auto steps = std::count(metrics.begin(), metrics.end(), '\n');
  EXPECT_LT(steps, 100000);
  EXPECT_TRUE(fs::exists(directory_.path() / "run" / "checkpoints" / fmt::format("step-{}", steps)))
      << steps;
}

TEST_F(TrainCli, OutlivesTheReaderOfItsOutput) {
  const std::string command = fmt::format("{}", fmt::join(arguments({"--out", "run"}), " "));
  const auto outcome = support::run(
      {{"bash", "-c", command + " | head -n 1; exit ${PIPESTATUS[0]}"}, "", directory_.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err,
            "assay: standard output was closed; training continues without printing\n");
  EXPECT_TRUE(fs::exists(directory_.path() / "run/checkpoints/step-12"));
  EXPECT_EQ(json_of({"show", "last", "--json"})["run"]["exit_code"], 0);
  const auto full = support::run({{"bash", "-c", command + "2 >/dev/full"}, "", directory_.path()});
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_THAT(full.err, HasSubstr("standard output: cannot write"));
  EXPECT_TRUE(fs::exists(directory_.path() / "run2/checkpoints/step-12"));
}

TEST_F(TrainCli, UnderNohupAClosedTerminalChangesNothing) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGHUP, &ignore, &before);
  const pid_t child = start({"--out", "run", "--set", "train.steps=100000", "--quiet"});
  ::sigaction(SIGHUP, &before, nullptr);
  const auto rows = [&] {
    const std::string metrics = content("run/metrics.jsonl");
    return std::count(metrics.begin(), metrics.end(), '\n');
  };
  const auto wait_for_rows = [&](std::ptrdiff_t wanted) {
    while (rows() < wanted) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0);
    }
  };
  wait_for_rows(1);
  ::kill(-child, SIGHUP);
  wait_for_rows(rows() + 5);
  ::kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(TrainCli, BadInputGetsOneLine) {
  struct Case {
    std::vector<std::string> arguments;
    int code;
    const char* line;
  };
  std::ofstream(directory_.path() / "cut.tokens") << "ASSAYTOK";
  for (const auto& [name, tokens, vocab] :
       {std::tuple{"wide.tokens", "1000", "300"}, std::tuple{"short.tokens", "20", "256"}}) {
    ASSERT_EQ(support::run({{support::program(), "data", "synth", "-o", name, "--tokens", tokens,
                             "--vocab", vocab},
                            "",
                            directory_.path()})
                  .exit_code,
              0);
  }
  fs::create_directory(directory_.path() / "closed");
  fs::create_directory(directory_.path() / "my texts");
  std::ofstream(directory_.path() / "my texts/a.txt") << "a text is no shard";
  fs::permissions(directory_.path() / "closed", fs::perms(0500));
  for (const Case& c : std::vector<Case>{
           {{"--set", "model.heads=5"}, 64, "model.heads"},
           {{"--set", "data.train=nowhere.tokens"}, 64, "nowhere.tokens"},
           {{"--set", "data.train=cut.tokens"}, 64, "cut.tokens"},
           {{"--set", "data.train=my texts"},
            64,
            "has no files that end in .tokens; `assay data tokenize 'my texts' -o NAME.tokens` "
            "makes one of documents"},
           {{"--set", "data.train=my texts/a.txt"}, 64, "`assay data tokenize` makes one of"},
           {{"--set", "train.precision=fp8"},
            64,
            "in fp32, not fp8; set train.precision to \"fp32"},
           {{"--set", "model.vocab=100"}, 64, "built-in.tokens"},
           {{"--set", "batch.micro_batch=1000000"}, 3, "memory"},
           {{"--set", "train.validate_every=2"}, 64, "train.validate_every"},
           {{"--set", "train.validate_every=2", "--set", "data.validation=nowhere.tokens"},
            64,
            "nowhere.tokens"},
           {{"--set", "train.validate_every=2", "--set", "data.validation=wide.tokens"},
            64,
            "wide.tokens: has a vocabulary of 300, but the model knows 256 tokens"},
           {{"--set", "train.validate_every=2", "--set", "data.validation=short.tokens"},
            64,
            "short.tokens"},
           {{"--stop-after", "soon"}, 64, "--stop-after"},
           {{"--device", "tpu"}, 64, "unknown device 'tpu'"},
           {{"--new-data"}, 64, "train --new-data: is for a run that is resumed"},
           {{"--from", "x", "--resume"}, 64, "train --from: starts a new run"},
           {{"--from", "nowhere"}, 64, "nowhere"},
           {{"--out", "/proc/nothing"}, 3, "/proc/nothing"},
           {{"--set", "model.experts=4", "--set", "model.experts_per_token=2", "--set",
             "train.optimizer=muon"},
            64,
            "train.optimizer"},
           {{"--set", "model.experts=4", "--set", "model.experts_per_token=5"},
            64,
            "model.experts_per_token"},
       }) {
    const auto outcome = train(c.arguments);
    EXPECT_EQ(outcome.exit_code, c.code) << c.line << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.line));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

// On a rented machine without its driver, CPUs would be busy for as long as it is paid for.
TEST_F(TrainCli, AJobForGpusDoesNotStartOnCpusUnasked) {
  const auto without_gpu = [&](const std::string& device) {
    std::vector<std::string> list = {"env", "CUDA_VISIBLE_DEVICES="};
    const std::vector<std::string> all =
        arguments({"--device", device, "--set", "cluster.extends=h200-1", "--set",
                   "train.precision=bf16", "--set", "train.steps=1", "--out", "gpu-job"});
    list.insert(list.end(), all.begin(), all.end());
    return support::run({list, "", directory_.path()});
  };
  const auto refused = without_gpu("auto");
  EXPECT_EQ(refused.exit_code, 3) << refused.out;
  EXPECT_THAT(refused.err,
              ::testing::ContainsRegex(
                  "the job is for NVIDIA H200, but no GPU can be used here: "
                  ".*(no GPU found|without CUDA).*train on CPUs with --device cpu\n$"));
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  EXPECT_FALSE(fs::exists(directory_.path() / "gpu-job"));
  EXPECT_EQ(without_gpu("cpu").exit_code, 0);
}

TEST_F(TrainCli, SaysWhichDeviceWasChosenAndWhy) {
  // No GPU is visible, whatever the machine has.
  const auto chosen = [&](const std::string& precision, bool json) {
    std::vector<std::string> list = {"env", "CUDA_VISIBLE_DEVICES="};
    const std::vector<std::string> all =
        arguments({"--device", "auto", "--set", "cluster.extends=h200-1", "--set",
                   "train.precision=" + precision, "--set", "train.steps=1", "--out",
                   "run-" + precision + (json ? "-json" : "")});
    list.insert(list.end(), all.begin(), all.end());
    if (json) list.emplace_back("--json");
    const auto outcome = support::run({list, "", directory_.path()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_THAT(chosen("fp32", false),
              HasSubstr("--device auto: the job sets train.precision = \"fp32\"\n"));
  std::istringstream lines(chosen("fp32", true));
  std::vector<std::string> events;
  for (std::string line; std::getline(lines, line);) {
    const Json document = Json::parse(line);
    events.push_back(document["event"]);
    if (document["event"] == "plan") {
      EXPECT_TRUE(document["device_reason"].is_string());
    }
    if (document["event"] != "startup") continue;
    // Its parts are all of it, but for what lies between them.
    double sum = 0;
    for (const auto& [name, seconds] : document["parts"].items()) {
      sum += seconds.get<double>();
    }
    EXPECT_LE(sum, document["seconds"].get<double>() + 1e-9);
    EXPECT_GT(sum, 0.5 * document["seconds"].get<double>());
    EXPECT_TRUE(document["parts"].contains("first_step"));
  }
  EXPECT_EQ(events, (std::vector<std::string>{"plan", "startup", "step", "saved", "result"}));
}

TEST_F(TrainCli, WeightsSurviveTheHuggingFaceFormat) {
  ASSERT_EQ(train({"--out", "run", "--stop-after", "2", "--quiet"}).exit_code, 0);
  const auto exported =
      support::run({{support::program(), "checkpoint", "export-hf", "run/checkpoints/step-2", "hf"},
                    "",
                    directory_.path()});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const auto imported = support::run(
      {{support::program(), "checkpoint", "import-hf", "hf", "again"}, "", directory_.path()});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  const auto back = support::run(
      {{support::program(), "checkpoint", "export-hf", "again/checkpoints/step-0", "hf2"},
       "",
       directory_.path()});
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(content("hf/model.safetensors"), content("hf2/model.safetensors"));
  EXPECT_EQ(train({"--out", "again", "--resume", "--stop-after", "1", "--quiet"}).exit_code, 0);
}

}  // namespace
}  // namespace assay
