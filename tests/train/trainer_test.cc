// Whole runs on a CPU: a stopped and resumed run equals one that was never stopped.
#include "train/trainer.h"

#include <gtest/gtest.h>
#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/testing/temp_dir.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/folder_name.h"
#include "train/checkpoint/write.h"
#include "train/cpu/cpu_backend.h"
#include "train/data/synth.h"
#include "train/resume.h"
#include "train/snapshot.h"
#include "train/tiny_job.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

class TrainerTest : public ::testing::Test {
 protected:
  void SetUp() override { set_ = std::make_unique<data::TokenSet>(text_tokens(dir_.path())); }

  base::Result<TrainingResult> run(const spec::JobSpec& job, TrainerOptions options,
                                   Reporter& reporter) {
    return run(job, std::move(options), reporter, cpu::make_cpu_backend(2));
  }
  base::Result<TrainingResult> run(const spec::JobSpec& job, TrainerOptions options,
                                   Reporter& reporter, std::shared_ptr<Backend> backend) {
    ASSAY_TRY(
        const ExecutableStep planned,
        plan_step(job, step::choices_of(job), memory_budget(*backend, std::int64_t{1} << 32U)));
    ASSAY_TRY_VOID(backend->prepare(planned.program, planned.plan));
    const data::BatchReader reader(*set_, static_cast<std::uint64_t>(job.train.seed), 256,
                                   mask_of(planned.program));
    options.out = dir_.path() / options.out;
    return train(job, planned, *backend, reader, options, reporter);
  }
  // The digests of a checkpoint's files.
  std::vector<std::string> digests(const fs::path& out, int step) {
    const auto manifest =
        checkpoint::verify(dir_.path() / out / "checkpoints" / fmt::format("step-{}", step));
    EXPECT_TRUE(manifest.has_value());
    std::vector<std::string> list;
    for (const auto& file : manifest->files) list.push_back(file.name + " " + file.blake3.hex());
    return list;
  }

  base::testing::TempDir dir_;
  std::unique_ptr<data::TokenSet> set_;
};

// What a rank's heartbeats carry.
TEST_F(TrainerTest, TellsEachStepAsItBegins) {
  RecordingReporter reporter;
  std::vector<std::int64_t> begun;
  TrainerOptions options{.out = "told", .stop_after = 2};
  options.begins = [&](Doing doing, std::int64_t step) {
    if (doing == Doing::kStep) begun.push_back(step);
  };
  ASSERT_TRUE(run(tiny_job(), options, reporter).has_value());
  EXPECT_EQ(begun, (std::vector<std::int64_t>{1, 2}));
  options.resume = true;
  options.stop_after = 3;
  ASSERT_TRUE(run(tiny_job(), options, reporter).has_value());
  EXPECT_EQ(begun, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST_F(TrainerTest, ResumedRunsEndAsIfNeverStopped) {
  for (const auto optimizer : {spec::Optimizer::kAdamw, spec::Optimizer::kMuon}) {
    spec::JobSpec job = tiny_job();
    job.train.optimizer = optimizer;
    const std::string tag = optimizer == spec::Optimizer::kMuon ? "muon" : "adamw";
    RecordingReporter whole;
    ASSERT_TRUE(run(job, {.out = tag}, whole).has_value());
    const auto expected = digests(tag, 12);
    for (const std::int64_t stop : {1, 4, 11}) {
      const std::string out = fmt::format("{}-{}", tag, stop);
      RecordingReporter first;
      const auto stopped = run(job, {.out = out, .stop_after = stop}, first);
      ASSERT_TRUE(stopped.has_value());
      EXPECT_EQ(stopped->ending, Ending::kStopAfter);
      EXPECT_EQ(stopped->step, stop);
      RecordingReporter second;
      const auto resumed = run(job, {.out = out, .resume = true}, second);
      ASSERT_TRUE(resumed.has_value()) << resumed.error().line();
      EXPECT_EQ(resumed->ending, Ending::kFinished);
      EXPECT_EQ(second.first_step, stop + 1);
      EXPECT_EQ(digests(out, 12), expected) << out;
      for (const StepReport& report : second.reports) {
        EXPECT_EQ(report.loss, whole.reports[static_cast<std::size_t>(report.step - 1)].loss);
      }
    }
  }
}

// Documents of eleven tokens in windows of 32: resumed to the bit, means over what counts, also of
// a validation, and no checkpoint goes on with another mask.
TEST_F(TrainerTest, DocumentsAreMasked) {
  std::filesystem::remove(dir_.path() / "text.tokens");
  set_ = std::make_unique<data::TokenSet>(text_tokens(dir_.path(), 11));
  spec::JobSpec job = tiny_job();
  job.data.mask = spec::Mask::kDocument;
  job.train.validate_every = 12;
  job.train.validate_tokens = 300;
  RecordingReporter whole;
  const auto result = run(job, {.out = "whole", .validation = set_.get()}, whole);
  ASSERT_TRUE(result.has_value()) << result.error().line();
  for (const StepReport& report : whole.reports) {
    ASSERT_TRUE(report.targets.has_value());
    EXPECT_GE(*report.targets, 8 * (32 - 3));
    EXPECT_LE(*report.targets, 8 * (32 - 2));
  }
  EXPECT_EQ(whole.reports.back().tokens, 12 * 8 * 32);
  EXPECT_LT(whole.reports.back().loss, whole.reports.front().loss);
  ASSERT_EQ(whole.validations.size(), 1U);
  EXPECT_GE(whole.validations[0].tokens, 10 * (32 - 3));
  EXPECT_LE(whole.validations[0].tokens, 10 * (32 - 2));
  RecordingReporter first;
  ASSERT_TRUE(run(job, {.out = "stopped", .stop_after = 5}, first).has_value());
  RecordingReporter second;
  ASSERT_TRUE(run(job, {.out = "stopped", .resume = true}, second).has_value());
  EXPECT_EQ(digests("stopped", 12), digests("whole", 12));
  job.data.mask = spec::Mask::kNone;
  job.train.validate_every = 0;
  job.train.steps = 14;
  RecordingReporter other;
  const auto refused = run(job, {.out = "whole", .resume = true}, other);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().line().find("data.mask"), std::string::npos);
}

// A CPU that claims to have timed algorithms, as GPUs do.
class TimedBackend : public Backend {
 public:
  base::Result<std::int64_t> available_bytes() override { return cpu_->available_bytes(); }
  base::Result<std::int64_t> extra_bytes(const step::Program& p) override {
    return cpu_->extra_bytes(p);
  }
  base::Result<void> prepare(const step::Program& p, const step::MemoryPlan& plan) override {
    return cpu_->prepare(p, plan);
  }
  base::Result<void> write(const step::View& to, std::span<const std::byte> from) override {
    return cpu_->write(to, from);
  }
  base::Result<void> read(const step::View& from, std::span<std::byte> to) override {
    return cpu_->read(from, to);
  }
  void begin_step(const StepSettings& settings) override { cpu_->begin_step(settings); }
  void set_batch(const step::Op& op, const MicroBatch& batch) override {
    cpu_->set_batch(op, batch);
  }
  base::Result<void> execute(const step::Op& op) override { return cpu_->execute(op); }
  base::Result<Scalars> finish_step() override {
    ++steps;
    return cpu_->finish_step();
  }
  [[nodiscard]] std::string description() const override { return "timed"; }
  [[nodiscard]] std::string algorithms() const override { return chosen; }
  base::Result<std::string> adopt(const std::string& algorithms) override {
    if (algorithms.substr(0, algorithms.find('\n')) != chosen.substr(0, chosen.find('\n'))) {
      return "of another card";
    }
    chosen = algorithms;
    return std::string();
  }
  void expect_copies() override {
    if (expected_after < 0) expected_after = steps;
  }

  std::string chosen;
  int steps = 0;
  int expected_after = -1;

 private:
  std::unique_ptr<Backend> cpu_ = cpu::make_cpu_backend(2);
};

TEST_F(TrainerTest, AlgorithmsTravelWithTheCheckpoint) {
  const spec::JobSpec job = tiny_job();
  RecordingReporter reporter;
  const auto first = std::make_shared<TimedBackend>();
  first->chosen = "card\n1 2 3\n";
  ASSERT_TRUE(run(job, {.out = "out", .stop_after = 4}, reporter, first).has_value());
  EXPECT_EQ(first->expected_after, 1);  // a checkpoint is near, but the first step is not disturbed
  // On the same machine another choice would have been made.
  const auto second = std::make_shared<TimedBackend>();
  second->chosen = "card\n4 5 6\n";
  ASSERT_TRUE(
      run(job, {.out = "out", .resume = true, .stop_after = 5}, reporter, second).has_value());
  EXPECT_EQ(second->chosen, "card\n1 2 3\n");
  EXPECT_TRUE(reporter.notes.empty());
  // Elsewhere it is said that results may differ. A CPU does not care.
  std::filesystem::path folder = dir_.path() / "out" / "checkpoints" / "step-5";
  auto saved = checkpoint::Checkpoint::open(folder);
  ASSERT_TRUE(saved.has_value());
  EXPECT_EQ(saved_algorithms(*saved), "card\n1 2 3\n");
  const auto third = std::make_shared<TimedBackend>();
  third->chosen = "another card\n7\n";
  ASSERT_TRUE(
      run(job, {.out = "out", .resume = true, .stop_after = 6}, reporter, third).has_value());
  ASSERT_EQ(reporter.notes.size(), 1U);
  EXPECT_EQ(reporter.notes[0], folder.string() + ": of another card");
  ASSERT_TRUE(run(job, {.out = "out", .resume = true}, reporter).has_value());
}

TEST_F(TrainerTest, SaysWhereTheStartWent) {
  struct Started : RecordingReporter {
    void started(const StartUp& startup) override {
      EXPECT_TRUE(reports.empty());
      for (const StartUp::Part& part : startup.parts()) parts.push_back(part.name);
    }
    std::vector<std::string> parts;
  };
  spec::JobSpec job = tiny_job();
  Started anew;
  StartUp startup;
  ASSERT_TRUE(run(job, {.out = "out", .stop_after = 2, .startup = &startup}, anew).has_value());
  EXPECT_EQ(anew.parts, (std::vector<std::string>{"weights", "first_step"}));
  Started resumed;
  StartUp again;
  ASSERT_TRUE(run(job, {.out = "out", .resume = true, .startup = &again}, resumed).has_value());
  EXPECT_EQ(resumed.parts, (std::vector<std::string>{"checkpoint", "first_step"}));
}

TEST_F(TrainerTest, ValidationChangesNothing) {
  for (const auto recompute : {spec::Recompute::kNone, spec::Recompute::kFull}) {
    spec::JobSpec job = tiny_job();
    job.train.recompute = recompute;
    const std::string tag = recompute == spec::Recompute::kNone ? "none" : "full";
    RecordingReporter plain;
    ASSERT_TRUE(run(job, {.out = tag + "-plain"}, plain).has_value());
    EXPECT_TRUE(plain.validations.empty());
    job.train.validate_every = 5;
    job.train.validate_tokens = 300;  // ten windows: two and a half micro-batches
    RecordingReporter validated;
    const auto result = run(job, {.out = tag + "-validated", .validation = set_.get()}, validated);
    ASSERT_TRUE(result.has_value()) << result.error().line();
    ASSERT_EQ(validated.validations.size(), 3U);  // 5, 10 and the last
    EXPECT_EQ(validated.validations[1].step, 10);
    EXPECT_EQ(validated.validations[2].step, 12);
    EXPECT_EQ(validated.validations[2].tokens, 320);
    EXPECT_EQ(result->validation_loss, validated.validations[2].loss);
    EXPECT_LT(validated.validations[2].loss, validated.validations[0].loss);
    EXPECT_EQ(digests(tag + "-plain", 12), digests(tag + "-validated", 12));
    for (std::size_t i = 0; i < plain.reports.size(); ++i) {
      EXPECT_EQ(plain.reports[i].loss, validated.reports[i].loss);
    }
  }
}

TEST_F(TrainerTest, ValidationIsTheLossOfAProgramOfItsOwn) {
  spec::JobSpec job = tiny_job();
  job.train.validate_every = 12;
  job.train.validate_tokens = 300;
  RecordingReporter reporter;
  const auto result = run(job, {.out = "own", .validation = set_.get()}, reporter);
  ASSERT_TRUE(result.has_value());
  // The saved weights in a program that computes the loss only, two windows at a time.
  step::Choices choices = step::choices_of(job);
  choices.purpose = step::Purpose::kLoss;
  choices.micro_batch = 2;
  choices.accumulate = 5;
  const auto program = step::build(job.model, choices);
  ASSERT_TRUE(program.has_value());
  const step::MemoryPlan plan = step::plan_memory(*program);
  const auto backend = cpu::make_cpu_backend(1);
  ASSERT_TRUE(backend->prepare(*program, plan).has_value());
  const auto saved = checkpoint::Checkpoint::open(result->checkpoint);
  ASSERT_TRUE(saved.has_value());
  ASSERT_TRUE(restore_weights(*backend, *program, *saved).has_value());
  const data::BatchReader reader(*set_, 0, 256);
  const auto scalars = run_step(
      *backend, *program, {.counted_targets = 1},
      [&](std::int32_t micro, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) {
        return reader.read(static_cast<std::uint64_t>(micro) * 2, {.micro = 2},
                           data::BatchSpans{tokens, targets});
      });
  ASSERT_TRUE(scalars.has_value());
  const auto value = [&](step::Scalar which) {
    return static_cast<double>((*scalars)[static_cast<std::size_t>(which)]);
  };
  EXPECT_EQ(value(step::Scalar::kCount), 320);
  EXPECT_NEAR(*result->validation_loss, value(step::Scalar::kLossSum) / value(step::Scalar::kCount),
              1e-5);
}

TEST_F(TrainerTest, AStopEndsAValidationToo) {
  std::atomic<bool> stop = false;
  spec::JobSpec job = tiny_job();
  job.train.validate_every = 1;
  RecordingReporter reporter;
  reporter.on_step = [&](const StepReport& report) { stop = report.step == 3; };
  const auto result =
      run(job, {.out = "stop-validation", .stop = &stop, .validation = set_.get()}, reporter);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->step, 3);
  EXPECT_EQ(reporter.validations.size(), 2U);
}

TEST_F(TrainerTest, LearnsSomething) {
  spec::JobSpec job = tiny_job();
  job.train.steps = 60;
  RecordingReporter reporter;
  ASSERT_TRUE(run(job, {.out = "learn"}, reporter).has_value());
  EXPECT_NEAR(reporter.reports.front().loss, std::log(256.0), 0.1);
  EXPECT_LT(reporter.reports.back().loss, 4.0);
}

TEST_F(TrainerTest, ASignalFinishesTheStepAndSaves) {
  std::atomic<bool> stop = false;
  RecordingReporter reporter;
  reporter.on_step = [&](const StepReport& report) { stop = report.step == 3; };
  const auto result = run(tiny_job(), {.out = "signal", .stop = &stop}, reporter);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->ending, Ending::kStopped);
  EXPECT_EQ(result->step, 3);
  EXPECT_TRUE(checkpoint::verify(result->checkpoint).has_value());
}

TEST_F(TrainerTest, StepsThatAreNotFiniteAreLeftOutOrEndTheRun) {
  spec::JobSpec job = tiny_job();
  job.train.learning_rate = 1e30;
  job.train.schedule = spec::Schedule::kConstant;
  job.train.warmup_steps = 0;
  RecordingReporter skipping;
  const auto skipped = run(job, {.out = "skip"}, skipping);
  ASSERT_TRUE(skipped.has_value());
  EXPECT_EQ(skipped->step, 12);
  EXPECT_TRUE(skipping.reports.back().skipped);
  EXPECT_FALSE(skipping.reports.front().skipped);
  job.train.non_finite = spec::NonFinite::kStop;
  RecordingReporter stopping;
  const auto stopped = run(job, {.out = "stop"}, stopping);
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->ending, Ending::kNotFinite);
  EXPECT_EQ(stopped->step, 2);
}

// With this rate the first step's gradients are finite, and its weights useless.
spec::JobSpec diverging_job() {
  spec::JobSpec job = tiny_job();
  job.train.learning_rate = 1e30;
  job.train.schedule = spec::Schedule::kConstant;
  job.train.warmup_steps = 0;
  return job;
}

TEST_F(TrainerTest, SkippedStepsInARowEndTheRunWithoutACheckpoint) {
  spec::JobSpec job = diverging_job();
  job.train.max_skipped = 5;
  RecordingReporter reporter;
  const auto stopped = run(job, {.out = "five"}, reporter);
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->ending, Ending::kNotFinite);
  EXPECT_EQ(stopped->step, 6);
  EXPECT_EQ(stopped->skipped, 5);
  EXPECT_EQ(stopped->checkpoint, "");
  EXPECT_FALSE(stopped->has_useless);
  EXPECT_EQ(reporter.saves, 0);
  // Also where the run, or the patience of the user, is shorter than that.
  for (const std::int64_t last : {4, 12}) {
    job.train.max_skipped = 20;
    const auto brief =
        run(job, {.out = fmt::format("last-{}", last), .stop_after = last}, reporter);
    ASSERT_TRUE(brief.has_value());
    EXPECT_EQ(brief->ending, Ending::kNotFinite);
    EXPECT_EQ(brief->skipped, last - 1);
    EXPECT_EQ(reporter.saves, 0);
  }
}

// Weights may be so large that the loss is still a number and no gradient is.
TEST_F(TrainerTest, ARunThatGivesUpSavesNothingMore) {
  int given_up = 0;
  for (const double rate : {1e2, 3e2, 1e3, 1e5, 1e9}) {
    spec::JobSpec job = diverging_job();
    job.train.learning_rate = rate;
    job.train.max_skipped = 3;
    job.train.steps = 40;
    job.checkpoint = {.every = 1, .keep = 99};
    RecordingReporter reporter;
    const std::string out = fmt::format("rate-{}", rate);
    const auto result = run(job, {.out = out}, reporter);
    ASSERT_TRUE(result.has_value()) << result.error().line();
    if (result->ending != Ending::kNotFinite) continue;
    ++given_up;
    const auto steps = checkpoint::steps_in(dir_.path() / out / "checkpoints");
    ASSERT_TRUE(steps.has_value());
    if (!steps->empty()) EXPECT_LE(steps->back(), result->step - result->skipped);
  }
  EXPECT_GE(given_up, 1);
}

TEST_F(TrainerTest, TheLastGoodCheckpointIsNotTheNewest) {
  RecordingReporter reporter;
  ASSERT_TRUE(run(tiny_job(), {.out = "good", .stop_after = 4}, reporter).has_value());
  spec::JobSpec job = diverging_job();
  job.checkpoint = {.every = 1, .keep = 9};
  const auto bad = run(job, {.out = "good", .resume = true}, reporter);
  ASSERT_TRUE(bad.has_value()) << bad.error().line();
  EXPECT_EQ(bad->ending, Ending::kNotFinite);
  // Step 5 was computed with the good weights, and saved before it was known what it made of them.
  EXPECT_EQ(bad->skipped, 7);
  EXPECT_EQ(bad->checkpoint.filename(), "step-4");
  EXPECT_TRUE(bad->has_useless);
  const auto steps = checkpoint::steps_in(dir_.path() / "good" / "checkpoints");
  ASSERT_TRUE(steps.has_value());
  EXPECT_EQ(*steps, (std::vector<std::int64_t>{4, 5}));
  // From there every step fails.
  const auto again = run(job, {.out = "good", .resume = true}, reporter);
  ASSERT_TRUE(again.has_value()) << again.error().line();
  EXPECT_EQ(again->ending, Ending::kNotFinite);
  EXPECT_EQ(again->checkpoint.filename(), "step-4");
}

TEST_F(TrainerTest, WeightsThatAreNoNumbersAreNotSaved) {
  spec::JobSpec job = diverging_job();
  job.train.learning_rate = 1e39;  // infinite in fp32
  RecordingReporter reporter;
  const auto result = run(job, {.out = "infinite", .stop_after = 1}, reporter);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().line().find("is not finite: training has diverged"), std::string::npos)
      << result.error().line();
  EXPECT_EQ(result.error().code, base::ExitCode::kNo);
  EXPECT_EQ(reporter.saves, 0);
}

// Skips the steps that it is told to, as if their tokens overflowed.
class UnluckyBackend : public Backend {
 public:
  explicit UnluckyBackend(std::set<std::int64_t> steps)
      : steps_(std::move(steps)), inner_(cpu::make_cpu_backend(2)) {}
  base::Result<std::int64_t> available_bytes() override { return inner_->available_bytes(); }
  base::Result<std::int64_t> extra_bytes(const step::Program& program) override {
    return inner_->extra_bytes(program);
  }
  base::Result<void> prepare(const step::Program& program, const step::MemoryPlan& plan) override {
    return inner_->prepare(program, plan);
  }
  base::Result<void> write(const step::View& to, std::span<const std::byte> from) override {
    return inner_->write(to, from);
  }
  base::Result<void> read(const step::View& from, std::span<std::byte> to) override {
    return inner_->read(from, to);
  }
  void begin_step(const StepSettings& settings) override {
    unlucky_ = steps_.contains(settings.step);
    inner_->begin_step(settings);
  }
  void set_batch(const step::Op& op, const MicroBatch& batch) override {
    inner_->set_batch(op, batch);
  }
  base::Result<void> execute(const step::Op& op) override { return inner_->execute(op); }
  base::Result<Scalars> finish_step() override {
    auto scalars = inner_->finish_step();
    if (scalars && unlucky_) (*scalars)[static_cast<std::size_t>(step::Scalar::kNonFinite)] = 1;
    return scalars;
  }
  [[nodiscard]] std::string description() const override { return "unlucky"; }

 private:
  std::set<std::int64_t> steps_;
  std::unique_ptr<Backend> inner_;
  bool unlucky_ = false;
};

TEST_F(TrainerTest, AStepThatIsSkippedByItselfCostsNothingElse) {
  spec::JobSpec job = tiny_job();
  job.checkpoint = {.every = 3, .keep = 9};
  job.train.max_skipped = 2;
  RecordingReporter reporter;
  const auto result = run(job, {.out = "unlucky"}, reporter,
                          std::make_shared<UnluckyBackend>(std::set<std::int64_t>{3, 6, 12}));
  ASSERT_TRUE(result.has_value()) << result.error().line();
  EXPECT_EQ(result->ending, Ending::kFinished);
  EXPECT_EQ(result->skipped, 1);
  EXPECT_EQ(result->checkpoint.filename(), "step-12");
  // What was due after a skipped step is saved after the next one.
  const auto steps = checkpoint::steps_in(dir_.path() / "unlucky" / "checkpoints");
  ASSERT_TRUE(steps.has_value());
  EXPECT_EQ(*steps, (std::vector<std::int64_t>{4, 7, 9, 12}));
}

TEST_F(TrainerTest, OtherRunsAreNotOverwrittenOrMixed) {
  RecordingReporter reporter;
  ASSERT_TRUE(run(tiny_job(), {.out = "x", .stop_after = 2}, reporter).has_value());
  const auto again = run(tiny_job(), {.out = "x"}, reporter);
  ASSERT_FALSE(again.has_value());
  EXPECT_NE(again.error().hint.find("--resume"), std::string::npos);
  spec::JobSpec other = tiny_job();
  other.model.ffn = 48;
  const auto mixed = run(other, {.out = "x", .resume = true}, reporter);
  ASSERT_FALSE(mixed.has_value());
  EXPECT_NE(mixed.error().what.find("another model"), std::string::npos);
  other = tiny_job();
  other.train.seed = 9;
  EXPECT_FALSE(run(other, {.out = "x", .resume = true}, reporter).has_value());
  other = tiny_job();
  other.batch.accumulate = 4;
  EXPECT_FALSE(run(other, {.out = "x", .resume = true}, reporter).has_value());
}

// The folder of checkpoints is a file for a while.
TEST_F(TrainerTest, ACheckpointThatWasNotWrittenIsTriedAgain) {
  spec::JobSpec job = tiny_job();
  job.checkpoint.every = 4;
  const fs::path root = dir_.path() / "z" / "checkpoints";
  const fs::path away = dir_.path() / "away";
  RecordingReporter reporter;
  const auto failed = [&] {
    const std::lock_guard lock(reporter.mutex);
    return !reporter.notes.empty();
  };
  reporter.on_step = [&](const StepReport& report) {
    if (report.step == 4) {
      fs::rename(root, away);
      std::ofstream(root) << "in the way";
    }
    if (report.step != 5) return;
    for (int i = 0; i < 1000 && !failed(); ++i) {  // until the writer's thread has seen it
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    fs::remove(root);
    fs::rename(away, root);
  };
  ASSERT_TRUE(run(job, {.out = "z", .stop_after = 7}, reporter).has_value());
  ASSERT_FALSE(reporter.notes.empty());
  EXPECT_NE(reporter.notes[0].find("THE CHECKPOINT OF STEP 4 WAS NOT WRITTEN"), std::string::npos)
      << reporter.notes[0];
  // Not at step 8, which would be the next that is due, but right after.
  EXPECT_TRUE(fs::exists(root / "step-5"));
  EXPECT_TRUE(fs::exists(root / "step-7"));
  EXPECT_EQ(reporter.saves, 2);
}

// A host that for a while has no memory for the copy of the state.
class CrowdedBackend : public TimedBackend {
 public:
  explicit CrowdedBackend(int failing) : failing_(failing) {}
  base::Result<HostCopy> copy_out(const step::Program& program,
                                  std::span<const step::View> views) override {
    if (failing_-- > 0) {
      return base::fail(base::unfit_error("host memory", "a checkpoint needs 1 GiB"));
    }
    return TimedBackend::copy_out(program, views);
  }

 private:
  int failing_;
};

TEST_F(TrainerTest, AStateThatCannotBeCopiedIsTriedAgain) {
  spec::JobSpec job = tiny_job();
  job.checkpoint.every = 4;
  RecordingReporter reporter;
  const auto backend = std::make_shared<CrowdedBackend>(1);
  const auto done = run(job, {.out = "crowded", .stop_after = 7}, reporter, backend);
  ASSERT_TRUE(done.has_value()) << done.error().line();
  ASSERT_EQ(reporter.notes.size(), 1U);
  EXPECT_EQ(reporter.notes[0],
            "THE CHECKPOINT OF STEP 4 WAS NOT WRITTEN, and will be tried again: host memory: a "
            "checkpoint needs 1 GiB");
  EXPECT_TRUE(fs::exists(dir_.path() / "crowded" / "checkpoints" / "step-7"));
  EXPECT_EQ(reporter.saves, 2);  // one right after that of step 4, and the last
  EXPECT_EQ(reporter.reports.size(), 7U);
}

TEST_F(TrainerTest, AStateThatCanNeverBeCopiedIsTheRunsError) {
  RecordingReporter reporter;
  const auto backend = std::make_shared<CrowdedBackend>(100);
  const auto done = run(tiny_job(), {.out = "full", .stop_after = 2}, reporter, backend);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().where, "host memory");
  EXPECT_EQ(reporter.notes.size(), 3U);
}

// What a job does not set depends on its length, and must not change when the run is made longer.
TEST_F(TrainerTest, ALongerRunGoesOnAsItBegan) {
  spec::JobSpec job = tiny_job();
  job.train.learning_rate_is_usual = job.train.warmup_is_usual = true;
  RecordingReporter first;
  ASSERT_TRUE(run(job, {.out = "short", .stop_after = 2}, first).has_value());
  const fs::path folder = dir_.path() / "short/checkpoints/step-2";
  const auto rate_of_step_3 = [&](const spec::JobSpec& longer, const std::string& note) {
    fs::remove_all(dir_.path() / "short/checkpoints/step-3");
    RecordingReporter reporter;
    const auto done = run(longer, {.out = "short", .resume = true, .stop_after = 3}, reporter);
    EXPECT_TRUE(done.has_value()) << done.error().line();
    EXPECT_EQ(reporter.notes, std::vector<std::string>{folder.string() + ": " + note});
    return reporter.reports.at(0).learning_rate;
  };
  spec::JobSpec longer = job;
  longer.train.steps = 40;
  longer.train.learning_rate = 1e-3;
  longer.train.warmup_steps = 10;
  EXPECT_DOUBLE_EQ(rate_of_step_3(longer,
                                  "train.learning_rate stays 0.003, train.warmup_steps stays 3, "
                                  "train.steps 12 -> 40"),
                   3e-3);  // the end of the warm-up of 3 steps
  // Saved with what it goes on with.
  const auto saved = checkpoint::Checkpoint::open(dir_.path() / "short/checkpoints/step-3");
  ASSERT_TRUE(saved.has_value());
  EXPECT_EQ(saved->manifest().state.extra.at("recipe"),
            (base::Json{{"learning_rate", 3e-3}, {"warmup_steps", 3}, {"steps", 40}}));
  longer.train.learning_rate_is_usual = longer.train.warmup_is_usual = false;
  EXPECT_DOUBLE_EQ(rate_of_step_3(longer,
                                  "train.learning_rate 0.003 -> 0.001, train.warmup_steps 3 -> 10, "
                                  "train.steps 12 -> 40"),
                   1e-3 * 3 / 10);
}

TEST_F(TrainerTest, ResumingNamesEveryChangedSetting) {
  RecordingReporter reporter;
  ASSERT_TRUE(run(tiny_job(), {.out = "changed", .stop_after = 2}, reporter).has_value());
  spec::JobSpec job = tiny_job();
  job.train.weight_decay = 0.2;
  job.train.beta2 = 0.99;
  job.train.clip = 0;
  job.train.z_loss = 1e-4;
  job.train.schedule = spec::Schedule::kLinear;
  job.train.recompute = spec::Recompute::kFull;  // does not matter
  ASSERT_TRUE(run(job, {.out = "changed", .resume = true, .stop_after = 3}, reporter).has_value());
  EXPECT_EQ(reporter.notes,
            std::vector<std::string>{
                (dir_.path() / "changed/checkpoints/step-2").string() +
                ": train.beta2 0.95 -> 0.99, train.clip 1.0 -> 0.0, train.schedule cosine -> "
                "linear, train.weight_decay 0.1 -> 0.2, train.z_loss 0.0 -> 0.0001"});
  // What it goes on with is now the run's.
  ASSERT_TRUE(run(job, {.out = "changed", .resume = true}, reporter).has_value());
  EXPECT_EQ(reporter.notes.size(), 1U);
}

TEST_F(TrainerTest, OtherDataAndOtherOptimizersNeedPermission) {
  RecordingReporter reporter;
  ASSERT_TRUE(run(tiny_job(), {.out = "other", .stop_after = 2}, reporter).has_value());
  // The same tokens elsewhere are the same data.
  fs::create_directory(dir_.path() / "moved");
  set_ = std::make_unique<data::TokenSet>(text_tokens(dir_.path() / "moved"));
  ASSERT_TRUE(
      run(tiny_job(), {.out = "other", .resume = true, .stop_after = 3}, reporter).has_value());
  EXPECT_TRUE(reporter.notes.empty());
  fs::create_directory(dir_.path() / "documents");
  set_ = std::make_unique<data::TokenSet>(text_tokens(dir_.path() / "documents", 1000));
  // Documents do not change the tokens, a shorter text does.
  ASSERT_TRUE(
      run(tiny_job(), {.out = "other", .resume = true, .stop_after = 4}, reporter).has_value());
  const fs::path tokens = dir_.path() / "other.tokens";
  ASSERT_TRUE(
      data::synthesize({.output = tokens, .tokens = 1 << 16, .vocabulary = 256, .seed = 1}));
  set_ = std::make_unique<data::TokenSet>(*data::TokenSet::open({.paths = {tokens.string()}}, 32));
  TrainerOptions options{.out = "other", .resume = true, .stop_after = 5};
  const auto refused = run(tiny_job(), options, reporter);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(
      refused.error().line().find("was trained on other data: data.train the built-in text ("),
      std::string::npos)
      << refused.error().line();
  EXPECT_NE(refused.error().hint.find("--new-data"), std::string::npos);
  EXPECT_TRUE(reporter.notes.empty());
  options.new_data = true;
  ASSERT_TRUE(run(tiny_job(), options, reporter).has_value());
  ASSERT_EQ(reporter.notes.size(), 1U);
  EXPECT_NE(reporter.notes[0].find("(65,536 tokens)"), std::string::npos) << reporter.notes[0];
  const auto saved = checkpoint::Checkpoint::open(dir_.path() / "other/checkpoints/step-5");
  ASSERT_TRUE(saved.has_value());
  EXPECT_EQ(saved->manifest().state.data_cursor.at("windows"), 8);  // one step from the beginning
  // From then on it is the run's data.
  options.stop_after = 6;
  ASSERT_TRUE(run(tiny_job(), options, reporter).has_value());
  EXPECT_EQ(reporter.notes.size(), 1U);

  spec::JobSpec muon = tiny_job();
  muon.train.optimizer = spec::Optimizer::kMuon;
  options = {.out = "other", .resume = true, .stop_after = 8};
  const auto other = run(muon, options, reporter);
  ASSERT_FALSE(other.has_value());
  EXPECT_NE(other.error().line().find("another optimizer: train.optimizer adamw -> muon; "
                                      "--new-optimizer"),
            std::string::npos)
      << other.error().line();
  options.new_optimizer = true;
  const auto done = run(muon, options, reporter);
  ASSERT_TRUE(done.has_value()) << done.error().line();
  EXPECT_EQ(done->step, 8);
  EXPECT_NE(reporter.notes.back().find("train.optimizer adamw -> muon"), std::string::npos);
  spec::JobSpec batch = muon;
  batch.batch.micro_batch = 2;
  const auto smaller = run(batch, options, reporter);
  ASSERT_FALSE(smaller.has_value());
  EXPECT_NE(smaller.error().line().find("another batch: batch.sequences 8 -> 4; "),
            std::string::npos)
      << smaller.error().line();
}

TEST_F(TrainerTest, ANewRunStartsFromWeights) {
  spec::JobSpec job = tiny_job();
  job.train.steps = 60;
  RecordingReporter first;
  ASSERT_TRUE(run(job, {.out = "pretrained"}, first).has_value());
  const fs::path weights = dir_.path() / "pretrained";
  // With another batch, optimizer and length.
  spec::JobSpec tuned = tiny_job();
  tuned.batch = {.sequence = 32, .micro_batch = 2, .accumulate = 2};
  tuned.train.optimizer = spec::Optimizer::kMuon;
  RecordingReporter second;
  const auto done = run(tuned, {.out = "tuned", .from = weights}, second);
  ASSERT_TRUE(done.has_value()) << done.error().line();
  EXPECT_EQ(second.first_step, 1);
  EXPECT_EQ(second.reports.front().tokens, 128);
  EXPECT_LT(second.reports.front().loss, 4.0);  // 5.5 with initial weights
  ASSERT_EQ(second.notes.size(), 1U);
  EXPECT_EQ(second.notes[0],
            "a new run with the weights of " + (weights / "checkpoints/step-60").string());
  // Resumed, it is itself; restarted before its first checkpoint, it begins again.
  RecordingReporter third;
  ASSERT_TRUE(run(tuned, {.out = "again", .resume = true, .from = weights, .stop_after = 1}, third)
                  .has_value());
  EXPECT_EQ(third.reports.front().loss, second.reports.front().loss);
  ASSERT_TRUE(run(tuned, {.out = "again", .resume = true, .from = weights, .stop_after = 2}, third)
                  .has_value());
  EXPECT_EQ(third.resumed_after, 1);
  EXPECT_EQ(third.reports.back().loss, second.reports[1].loss);

  spec::JobSpec other = tiny_job();
  other.model.ffn = 48;
  other.model.rope_theta = 500;
  const auto refused = run(other, {.out = "other-model", .from = weights}, second);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().line().find("is a checkpoint of another model: model.ffn is 64 in the "
                                        "checkpoint and 48 in this job, model.rope_theta is "),
            std::string::npos)
      << refused.error().line();
  const fs::path file = weights / "checkpoints/step-60/weights.safetensors";
  std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(static_cast<std::streamoff>(fs::file_size(file)) - 3);
  damaged.put('x');
  damaged.close();
  const auto bad = run(tuned, {.out = "bad", .from = weights}, second);
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().line().find("weights.safetensors"), std::string::npos)
      << bad.error().line();
}

// As earlier versions wrote them.
TEST_F(TrainerTest, ACheckpointWithoutSettingsIsSaidToBeOne) {
  const auto made = [&](const char* name, const base::Json& extra) {
    checkpoint::Snapshot snapshot{.state = {.step = 3, .extra = extra}};
    snapshot.parts.push_back({.name = "weights"});
    snapshot.parts[0].tensors.push_back(
        checkpoint::owned_tensor({"t", checkpoint::TensorDtype::kU8, {1}}, {std::byte{1}}));
    const fs::path root = dir_.path() / name;
    EXPECT_TRUE(checkpoint::prepare_root(root).has_value());
    EXPECT_TRUE(checkpoint::write_checkpoint(root, snapshot).has_value());
    return *checkpoint::Checkpoint::open(root / "step-3");
  };
  spec::JobSpec job = tiny_job();
  job.train.learning_rate_is_usual = true;
  const base::Json recipe{{"learning_rate", 0.5}, {"warmup_steps", 3}, {"steps", 12}};
  const std::string unknown =
      "its data and other settings are not known: it was imported, or an earlier assay wrote it";
  const auto old = made("old", {{"recipe", recipe}, {"batch", batch_facts(job)}});
  EXPECT_EQ(keep_recipe(old, job, {}), "train.learning_rate stays 0.5, " + unknown);
  EXPECT_EQ(job.train.learning_rate, 0.5);
  EXPECT_EQ(keep_recipe(made("oldest", base::Json::object()), job, {}), unknown);
}

TEST_F(TrainerTest, AFinishedRunHasNothingLeftToDo) {
  RecordingReporter first;
  ASSERT_TRUE(run(tiny_job(), {.out = "done"}, first).has_value());
  EXPECT_EQ(first.resumed_after, -1);
  const auto before = digests("done", 12);
  RecordingReporter second;
  const auto again = run(tiny_job(), {.out = "done", .resume = true}, second);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(second.resumed_after, 12);
  EXPECT_TRUE(second.reports.empty());
  EXPECT_EQ(second.saves, 0);
  EXPECT_EQ(digests("done", 12), before);
}

TEST_F(TrainerTest, ADamagedCheckpointIsPassedOver) {
  spec::JobSpec job = tiny_job();
  job.checkpoint.every = 2;
  job.checkpoint.keep = 3;
  RecordingReporter first;
  ASSERT_TRUE(run(job, {.out = "y", .stop_after = 6}, first).has_value());
  EXPECT_EQ(first.saves, 3);
  const fs::path newest = dir_.path() / "y" / "checkpoints" / "step-6" / "weights.safetensors";
  fs::resize_file(newest, fs::file_size(newest) - 1);
  RecordingReporter second;
  const auto resumed = run(job, {.out = "y", .resume = true}, second);
  ASSERT_TRUE(resumed.has_value()) << resumed.error().line();
  EXPECT_EQ(second.first_step, 5);
  ASSERT_EQ(second.notes.size(), 1U);
  EXPECT_NE(second.notes[0].find("weights.safetensors"), std::string::npos);
}

// Imported weights are a checkpoint of step 0, which has no optimizer.
TEST_F(TrainerTest, ADamagedCheckpointLeavesNothingBehindInTheDevice) {
  const spec::JobSpec job = tiny_job();
  RecordingReporter reporter;
  ASSERT_TRUE(run(job, {.out = "other", .stop_after = 3}, reporter).has_value());
  const auto other = checkpoint::Checkpoint::open(dir_.path() / "other/checkpoints/step-3");
  ASSERT_TRUE(other.has_value());
  const auto weights = other->part("weights");
  ASSERT_TRUE(weights.has_value());
  for (const char* out : {"from-import", "passed-over"}) {
    checkpoint::Snapshot imported;
    imported.state.layout = other->manifest().state.layout;
    imported.state.extra = {{"model", other->manifest().state.extra.at("model")}};
    imported.parts = {{.name = "weights", .tensors = {}}};
    std::vector<std::vector<std::byte>> bytes;
    for (const checkpoint::StoredTensor& tensor : weights->tensors()) {
      bytes.emplace_back(static_cast<std::size_t>(*tensor.info.bytes()));
      ASSERT_TRUE(weights->read(tensor, 0, bytes.back()).has_value());
      imported.parts[0].tensors.push_back({.info = tensor.info, .data = bytes.back()});
    }
    const fs::path root = dir_.path() / out / "checkpoints";
    fs::create_directories(root);
    ASSERT_TRUE(checkpoint::write_checkpoint(root, imported).has_value());
    ASSERT_TRUE(run(job, {.out = out, .resume = true, .stop_after = 4}, reporter).has_value());
  }
  const auto expected = digests("from-import", 4);
  // Its last byte differs, so that it is found out only when all has been read.
  const fs::path newest = dir_.path() / "passed-over/checkpoints/step-4/optimizer.safetensors";
  std::fstream file(newest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const auto last = static_cast<char>(file.peek());
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(last ^ 1));
  file.close();
  RecordingReporter second;
  ASSERT_TRUE(
      run(job, {.out = "passed-over", .resume = true, .stop_after = 4}, second).has_value());
  EXPECT_EQ(second.first_step, 1);
  EXPECT_EQ(digests("passed-over", 4), expected);
}

}  // namespace
}  // namespace assay::train
