// Several ranks on a CPU give the same losses and weights as one rank with the same batch.
#include "train/ranks.h"

namespace assay::train {
namespace {

// The same losses, norms, weights and optimizer, to the last bit, in every layout; and each rank
// executes its list.
TEST_F(RanksTest, TrainWhatOneRankTrains) {
  constexpr spec::ShardUnit kModule = spec::ShardUnit::kModule;
  const std::vector<Spread> spreads = {
      {.fsdp = 2},
      {.fsdp = 3, .zero = 2},
      {.fsdp = 2, .zero = 3},
      {.fsdp = 4, .zero = 3, .unit = kModule},
      {.fsdp = 6, .zero = 3},
      {.dp = 3},
      {.dp = 2, .fsdp = 2, .zero = 3},
      {.dp = 2, .fsdp = 3, .zero = 1},
      {.dp = 3, .fsdp = 4, .zero = 3, .unit = kModule},
      {.pp = 2},
      {.pp = 2, .schedule = spec::PipelineSchedule::kGpipe},
      {.pp = 4},
      {.pp = 2, .schedule = spec::PipelineSchedule::kInterleaved, .chunks = 2},
      {.fsdp = 2, .zero = 3, .pp = 2},
      {.dp = 2, .fsdp = 2, .zero = 1, .pp = 3},
      {.fsdp = 3,
       .zero = 3,
       .unit = kModule,
       .pp = 2,
       .schedule = spec::PipelineSchedule::kInterleaved,
       .chunks = 2},
  };
  const std::vector<Kind> all = kinds();
  for (const Kind& kind : all) {
    const std::string alone = fmt::format("{}-alone", kind.name);
    const RanksResult one = run_ranks(kind.job, 1, {.out = alone});
    ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
    for (const Spread& drawn : spreads) {
      // All of them for one kind, and some for the others.
      const auto which = (&drawn - spreads.data()) + (&kind - all.data());
      if (&kind != all.data() && which % 3 != 0) continue;
      Spread over = drawn;
      if (kind.job.train.optimizer == spec::Optimizer::kMuon) over.zero = 2;
      SCOPED_TRACE(fmt::format("{} on {}", kind.name, over.text()));
      const std::string out = fmt::format("{}-{}", kind.name, &drawn - spreads.data());
      expect_trains_as(alone, one, kind.job, over, out);
    }
  }
}

// Attention within documents, and means over the targets that count, in every layout: how many
// count differs from micro-batch to micro-batch, and a rank knows those of all.
TEST_F(RanksTest, MaskDocumentsAlikeInEveryLayout) {
  use_documents_of(13);
  const std::vector<Spread> spreads = {
      {.fsdp = 3, .zero = 3},
      {.dp = 2, .fsdp = 2, .zero = 1},
      {.pp = 3},
      {.pp = 2, .schedule = spec::PipelineSchedule::kInterleaved, .chunks = 2},
      {.fsdp = 2, .zero = 3, .pp = 2, .schedule = spec::PipelineSchedule::kZbH1},
      {.fsdp = 2, .zero = 2, .pp = 2, .schedule = spec::PipelineSchedule::kGpipe},
  };
  Kind kind = kinds()[0];
  kind.job.data.mask = spec::Mask::kDocument;
  const RanksResult one = run_ranks(kind.job, 1, {.out = "alone"});
  ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
  for (const StepReport& report : one.reporters[0].reports) {
    // In 24 windows of 32 targets, of which every thirteenth or so begins a document.
    ASSERT_TRUE(report.targets.has_value());
    EXPECT_GE(*report.targets, 24 * (32 - 3));
    EXPECT_LE(*report.targets, 24 * (32 - 2));
  }
  std::size_t which = 0;
  for (const Spread& over : spreads) {
    for (const auto recompute : {spec::Recompute::kNone, spec::Recompute::kFull}) {
      kind.job.train.recompute = recompute;
      SCOPED_TRACE(over.text());
      expect_trains_as("alone", one, kind.job, over, fmt::format("many-{}", which++));
    }
  }
  kind.job.data.mask = spec::Mask::kNone;
  const RanksResult other = run_ranks(kind.job, 1, {.out = "unmasked"});
  ASSERT_TRUE(other.result.has_value());
  EXPECT_NE(other.reporters[0].reports[0].loss, one.reporters[0].reports[0].loss);
}

// With every policy of recomputation: what the later gradients of weights read must still be there.
TEST_F(RanksTest, ZeroBubblePipelinesTrainWhatOneRankTrains) {
  constexpr spec::PipelineSchedule kZbH1 = spec::PipelineSchedule::kZbH1;
  const std::vector<Spread> spreads = {
      {.pp = 2, .schedule = kZbH1},
      {.pp = 3, .schedule = kZbH1},
      {.pp = 4, .schedule = kZbH1},
      {.fsdp = 2, .zero = 3, .pp = 2, .schedule = kZbH1},
      {.dp = 2, .fsdp = 2, .zero = 1, .pp = 3, .schedule = kZbH1},
      {.fsdp = 3, .zero = 3, .unit = spec::ShardUnit::kModule, .pp = 2, .schedule = kZbH1},
  };
  std::size_t which = 0;
  for (Kind& kind : kinds()) {
    const std::string alone = fmt::format("{}-alone", kind.name);
    const RanksResult one = run_ranks(kind.job, 1, {.out = alone});
    ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
    for (const auto recompute : step::kRecomputePolicies) {
      kind.job.train.recompute = recompute;
      for (int times = 0; times < 2; ++times) {
        Spread over = spreads[which++ % spreads.size()];
        if (kind.job.train.optimizer == spec::Optimizer::kMuon) over.zero = 2;
        SCOPED_TRACE(
            fmt::format("{} on {} recompute {}", kind.name, over.text(), spec::to_text(recompute)));
        expect_trains_as(alone, one, kind.job, over, fmt::format("{}-{}", kind.name, which));
      }
    }
  }
}

TEST_F(RanksTest, RepeatToTheLastBitInAnyOrderOfArrival) {
  std::vector<std::string> first;
  for (const int late : {0, 1, 2}) {
    const std::string out = fmt::format("late-{}", late);
    RanksResult outcome = run_ranks(kinds()[0].job, 3, {.out = out}, [&](Rank& rank) {
      if (rank.ranks.rank() != late) return;
      rank.reporter.on_step = [](const StepReport&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      };
    });
    ASSERT_TRUE(outcome.result.has_value());
    if (first.empty()) first = contents(out, 6);
    EXPECT_EQ(contents(out, 6), first);
  }
}

TEST_F(RanksTest, ExecuteTheirListsOpForOp) {
  for (const Kind& kind : kinds()) {
    std::vector<ExecutedLog> logs(3);
    const RanksResult outcome = run_ranks(
        kind.job, 3, {.out = kind.name, .stop_after = 2},
        [&](Rank& rank) { rank.log = &logs[static_cast<std::size_t>(rank.ranks.rank())]; });
    EXPECT_TRUE(outcome.result.has_value());
    for (const ExecutedLog& log : logs) EXPECT_FALSE(log.empty());
  }
}

TEST_F(RanksTest, ResumedRunsEndAsIfNeverStopped) {
  const spec::JobSpec job = kinds()[0].job;
  ASSERT_TRUE(run_ranks(job, 3, {.out = "whole"}).result.has_value());
  ASSERT_TRUE(run_ranks(job, 3, {.out = "parts", .stop_after = 2}).result.has_value());
  const RanksResult resumed = run_ranks(job, 3, {.out = "parts", .resume = true});
  ASSERT_TRUE(resumed.result.has_value()) << resumed.result.error().line();
  for (const RecordingReporter& reporter : resumed.reporters) EXPECT_EQ(reporter.first_step, 3);
  EXPECT_EQ(contents("parts", 6), contents("whole", 6));
}

TEST_F(RanksTest, AStoppedRunResumesOnOtherRanks) {
  for (const Kind& kind : kinds()) {
    const std::string whole = fmt::format("{}-whole", kind.name);
    ASSERT_TRUE(run_ranks(kind.job, 1, {.out = whole}).result.has_value());
    const std::string out = fmt::format("{}-moved", kind.name);
    int step = 0;
    for (const int ranks : {2, 1, 3, 4}) {
      const RanksResult moved =
          run_ranks(kind.job, ranks, {.out = out, .resume = step > 0, .stop_after = ++step});
      ASSERT_TRUE(moved.result.has_value()) << moved.result.error().line();
    }
    ASSERT_TRUE(run_ranks(kind.job, 2, {.out = out, .resume = true}).result.has_value());
    EXPECT_EQ(contents(out, 6), contents(whole, 6)) << kind.name;
  }
}

// Saved by ranks in one way, restored in another, saved again, …: the same as one rank's in the
// end.
TEST_F(RanksTest, AStoppedRunResumesInAnyOtherLayout) {
  const std::vector<Spread> ways = {{.fsdp = 2, .zero = 3, .pp = 2},
                                    {.dp = 2, .fsdp = 2, .zero = 1},
                                    {.pp = 3},
                                    {.fsdp = 6, .zero = 3, .unit = spec::ShardUnit::kModule},
                                    {.pp = 2, .schedule = spec::PipelineSchedule::kZbH1},
                                    {.fsdp = 1}};
  const spec::JobSpec job = kinds()[0].job;
  ASSERT_TRUE(run_ranks(job, 1, {.out = "one"}).result.has_value());
  std::int64_t step = 0;
  for (const Spread& way : ways) {
    SCOPED_TRACE(way.text());
    const RanksResult outcome =
        run_spread(job, way, {.out = "moved", .resume = step > 0, .stop_after = step + 1});
    ASSERT_TRUE(outcome.result.has_value()) << outcome.result.error().line();
    const auto from = checkpoint::Checkpoint::open(saved("moved", ++step));
    ASSERT_TRUE(from.has_value());
    EXPECT_EQ(from->manifest().ranks, way.ranks());
  }
  expect_same("moved", "one", 6);
  EXPECT_EQ(run_spread(job, ways[3], {.out = "sharded"}).result.has_value(), true);
  EXPECT_EQ(read_independently("sharded", 6), read_independently("one", 6));
  EXPECT_EQ(read_independently("moved", 6), read_independently("one", 6));
}

TEST_F(RanksTest, ModelsAreExportedFromShardsAsFromOne) {
  const spec::JobSpec job = kinds()[0].job;
  const auto exported = [&](const std::string& out, const Spread& over) {
    EXPECT_TRUE(run_spread(job, over, {.out = out, .stop_after = 1}).result.has_value());
    const auto from = checkpoint::Checkpoint::open(saved(out, 1));
    EXPECT_TRUE(from.has_value());
    EXPECT_TRUE(export_hf(*from, dir_.path() / (out + "-hf")).has_value());
    const auto text = base::read_file(dir_.path() / (out + "-hf") / "model.safetensors",
                                      base::Bytes(std::int64_t{1} << 30U));
    EXPECT_TRUE(text.has_value());
    return text.value_or("");
  };
  const std::string one = exported("one", {});
  EXPECT_GT(one.size(), 1000U);
  EXPECT_TRUE(exported("many", {.fsdp = 3, .zero = 3, .pp = 2}) == one);
}

// The newest checkpoint lacks a shard: the one before it is used, and the run ends the same.
TEST_F(RanksTest, ADamagedShardIsReportedAndTheCheckpointBeforeItUsed) {
  spec::JobSpec job = kinds()[0].job;
  ASSERT_TRUE(run_ranks(job, 3, {.out = "whole"}).result.has_value());
  job.checkpoint.every = 2;
  job.checkpoint.keep = 10;
  ASSERT_TRUE(run_ranks(job, 3, {.out = "hurt", .stop_after = 4}).result.has_value());
  const auto manifest = checkpoint::verify(saved("hurt", 4));
  ASSERT_TRUE(manifest.has_value());
  const std::string file = manifest->files.back().name;
  ASSERT_TRUE(fs::remove(saved("hurt", 4) / file));
  const RanksResult resumed = run_ranks(job, 2, {.out = "hurt", .resume = true});
  ASSERT_TRUE(resumed.result.has_value()) << resumed.result.error().line();
  const RecordingReporter& first = resumed.reporters.front();
  EXPECT_EQ(first.first_step, 3);
  ASSERT_FALSE(first.notes.empty());
  EXPECT_NE(first.notes[0].find(file + ": is missing"), std::string::npos) << first.notes[0];
  expect_same("hurt", "whole", 6);
}

// In the middle of a run, training goes on; the last checkpoint must be written.
TEST_F(RanksTest, ACheckpointThatCannotBeWrittenIsReportedAndTrainingGoesOn) {
  spec::JobSpec job = kinds()[0].job;
  job.checkpoint.every = 2;
  const fs::path root = dir_.path() / "gone/checkpoints";
  const RanksResult outcome = run_ranks(job, 3, {.out = "gone"}, [&](Rank& rank) {
    if (rank.ranks.rank() != 0) return;
    rank.reporter.on_step = [&](const StepReport& report) {
      std::error_code ignored;
      if (report.step == 2) fs::rename(root, dir_.path() / "aside", ignored);
      if (report.step == 4) fs::rename(dir_.path() / "aside", root, ignored);
    };
  });
  ASSERT_TRUE(outcome.result.has_value()) << outcome.result.error().line();
  const RecordingReporter& first = outcome.reporters.front();
  // After step 2, and when it is tried again after step 3.
  ASSERT_FALSE(first.notes.empty());
  EXPECT_NE(first.notes[0].find("THE CHECKPOINT OF STEP 2 WAS NOT WRITTEN"), std::string::npos);
  EXPECT_EQ(first.saves, 2);
  EXPECT_FALSE(fs::exists(saved("gone", 2)));
  EXPECT_TRUE(checkpoint::verify(saved("gone", 4)).has_value());
  EXPECT_TRUE(checkpoint::verify(saved("gone", 6)).has_value());
}

TEST_F(RanksTest, OneRanksSignalStopsAllAfterTheSameStep) {
  std::atomic<bool> stop = false;
  const RanksResult outcome = run_ranks(kinds()[0].job, 3, {.out = "signal"}, [&](Rank& rank) {
    if (rank.ranks.rank() != 1) return;
    rank.options.stop = &stop;
    rank.reporter.on_step = [&](const StepReport& report) { stop = report.step == 2; };
  });
  ASSERT_TRUE(outcome.result.has_value());
  for (const RecordingReporter& reporter : outcome.reporters)
    EXPECT_EQ(reporter.reports.size(), 2U);
  EXPECT_TRUE(checkpoint::verify(saved("signal", 2)).has_value());
}

TEST_F(RanksTest, ValidateEqually) {
  spec::JobSpec job = kinds()[0].job;
  const RanksResult plain = run_ranks(job, 2, {.out = "plain"});
  job.train.validate_every = 2;
  job.train.validate_tokens = 300;
  const RanksResult outcome = run_ranks(job, 2, {.out = "validated", .validation = set_.get()});
  ASSERT_TRUE(outcome.result.has_value());
  const RecordingReporter& first = outcome.reporters.front();
  ASSERT_FALSE(first.validations.empty());
  for (const RecordingReporter& reporter : outcome.reporters) {
    ASSERT_EQ(reporter.validations.size(), first.validations.size());
    EXPECT_EQ(reporter.validations.back().loss, first.validations.back().loss);
    EXPECT_EQ(reporter.reports.back().loss, plain.reporters.front().reports.back().loss);
  }
}

// The forward pass of one micro-batch through all stages, also where a step has no other.
TEST_F(RanksTest, StagesOfAPipelineValidateAsOneRank) {
  spec::JobSpec job = kinds()[0].job;
  job.train.validate_every = 2;
  job.train.validate_tokens = 300;
  for (const std::int64_t micro_batch : {kSequences, std::int64_t{2}}) {
    const RanksResult one =
        run_spread(job, {.micro_batch = micro_batch},
                   {.out = fmt::format("one-{}", micro_batch), .validation = set_.get()});
    ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
    ASSERT_FALSE(one.reporters[0].validations.empty());
    for (Spread over : std::vector<Spread>{
             {.pp = 2},
             {.pp = 4, .schedule = spec::PipelineSchedule::kGpipe},
             {.pp = 3, .schedule = spec::PipelineSchedule::kZbH1},
             {.pp = 2, .schedule = spec::PipelineSchedule::kInterleaved, .chunks = 2},
         }) {
      if (over.chunks > 1 && micro_batch == kSequences) continue;  // which needs two
      over.micro_batch = micro_batch;
      SCOPED_TRACE(fmt::format("{} micro-batches of {}", over.text(), micro_batch));
      const RanksResult many = run_spread(
          job, over,
          {.out = fmt::format("{} {}", over.text(), micro_batch), .validation = set_.get()});
      ASSERT_TRUE(many.result.has_value()) << many.result.error().line();
      for (const RecordingReporter& reporter : many.reporters) {
        ASSERT_EQ(reporter.validations.size(), one.reporters[0].validations.size());
        for (std::size_t i = 0; i < reporter.validations.size(); ++i) {
          EXPECT_EQ(reporter.validations[i].loss, one.reporters[0].validations[i].loss);
        }
        EXPECT_EQ(reporter.reports.back().loss, one.reporters[0].reports.back().loss);
      }
    }
  }
}

// Where steps gather what the next one begins with: evaluations in between and another start find
// the weights of the last update, and change nothing.
TEST_F(RanksTest, EvaluationsAndResumesMeetTheWeightsOfTheLastStep) {
  spec::JobSpec job = kinds()[0].job;
  job.train.validate_every = 2;
  job.train.validate_tokens = 300;
  const RanksResult one = run_ranks(job, 1, {.out = "one", .validation = set_.get()});
  ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
  std::map<std::int64_t, double> expected;
  for (const auto& validated : one.reporters[0].validations) {
    expected[validated.step] = validated.loss;
  }
  ASSERT_EQ(expected.size(), 3U);
  for (const Spread& over : std::vector<Spread>{
           {.fsdp = 3, .zero = 3},
           {.dp = 2, .fsdp = 2, .zero = 3, .unit = spec::ShardUnit::kModule},
           {.fsdp = 2, .zero = 3, .pp = 2, .schedule = spec::PipelineSchedule::kZbH1},
           {.fsdp = 2,
           .zero = 3,
           .pp = 2,
           .schedule = spec::PipelineSchedule::kInterleaved,
           .chunks = 2},
       }) {
    SCOPED_TRACE(over.text());
    TrainerOptions options{.out = over.text(), .stop_after = 3, .validation = set_.get()};
    const RanksResult begun = run_spread(job, over, options);
    ASSERT_TRUE(begun.result.has_value()) << begun.result.error().line();
    options.stop_after.reset();
    options.resume = true;
    const RanksResult resumed = run_spread(job, over, options);
    ASSERT_TRUE(resumed.result.has_value()) << resumed.result.error().line();
    for (std::size_t rank = 0; rank < begun.reporters.size(); ++rank) {
      std::map<std::int64_t, double> found;
      for (const RanksResult* part : {&begun, &resumed}) {
        for (const auto& validated : part->reporters[rank].validations) {
          found[validated.step] = validated.loss;
        }
      }
      EXPECT_EQ(found, expected);
    }
    expect_same(over.text(), "one", 6);
  }
}

TEST_F(RanksTest, StepsThatAreNotFiniteAreLeftOutOnAll) {
  spec::JobSpec job = kinds()[0].job;
  job.train.learning_rate = 1e30;
  job.train.schedule = spec::Schedule::kConstant;
  job.train.warmup_steps = 0;
  const RanksResult outcome = run_ranks(job, 2, {.out = "skip"});
  ASSERT_TRUE(outcome.result.has_value());
  for (const RecordingReporter& reporter : outcome.reporters) {
    EXPECT_FALSE(reporter.reports.front().skipped);
    EXPECT_TRUE(reporter.reports.back().skipped);
  }
}

TEST_F(RanksTest, StartFromTheWeightsOfAnyLayout) {
  const Kind kind = kinds()[0];
  ASSERT_TRUE(run_ranks(kind.job, 3, {.out = "pretrained"}).result.has_value());
  const TrainerOptions from{.out = "alone", .from = dir_.path() / "pretrained"};
  const RanksResult one = run_ranks(kind.job, 1, from);
  ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
  EXPECT_LT(one.reporters[0].reports[0].loss, 5.4);
  std::size_t which = 0;
  for (const Spread& over : {Spread{.fsdp = 2, .zero = 3}, Spread{.dp = 2, .pp = 2}}) {
    TrainerOptions options = from;
    options.out = fmt::format("from-{}", which++);
    const RanksResult many = run_spread(kind.job, over, options);
    ASSERT_TRUE(many.result.has_value()) << many.result.error().line();
    expect_same(options.out.string(), "alone", 6);
  }
}

// All decide alike, or they would wait for each other.
TEST_F(RanksTest, SkippedStepsInARowEndAllRanksOfAnyLayout) {
  spec::JobSpec job = kinds()[0].job;
  job.train.learning_rate = 1e30;
  job.train.schedule = spec::Schedule::kConstant;
  job.train.warmup_steps = 0;
  job.train.max_skipped = 3;
  job.checkpoint.every = 2;
  std::size_t which = 0;
  for (const Spread& over :
       {Spread{.fsdp = 2, .zero = 3}, Spread{.dp = 3}, Spread{.pp = 2}, Spread{.tp = 2, .sp = true},
        Spread{.cp = 2}, Spread{.fsdp = 2, .pp = 2, .schedule = spec::PipelineSchedule::kZbH1}}) {
    SCOPED_TRACE(over.text());
    const std::string out = fmt::format("row-{}", which++);
    const RanksResult outcome = run_spread(job, over, {.out = out});
    ASSERT_TRUE(outcome.result.has_value()) << outcome.result.error().line();
    for (const RecordingReporter& reporter : outcome.reporters) {
      EXPECT_EQ(reporter.reports.size(), 4U);
    }
    const auto steps = checkpoint::steps_in(dir_.path() / out / "checkpoints");
    ASSERT_TRUE(steps.has_value());
    EXPECT_TRUE(steps->empty());
  }
}

TEST_F(RanksTest, ARankThatCannotReadEndsAllWithItsReason) {
  const RanksResult outcome = run_ranks(kinds()[0].job, 3, {.out = "broken"}, [](Rank& rank) {
    if (rank.ranks.rank() == 2) rank.vocabulary = 10;
  });
  ASSERT_FALSE(outcome.result.has_value());
  EXPECT_NE(outcome.result.error().line().find("text.tokens"), std::string::npos)
      << outcome.result.error().line();
}

}  // namespace
}  // namespace assay::train
