// What tests of several ranks on a CPU have in common: the same job on one rank and spread over
// several, as threads, and their checkpoints compared.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/file.h"
#include "base/testing/temp_dir.h"
#include "comm/local.h"
#include "hash/blake3.h"
#include "spec/enum_names.h"
#include "spec/testing/model_shapes.h"
#include "step/recompute.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/diff.h"
#include "train/checkpoint/folder_name.h"
#include "train/cpu/cpu_backend.h"
#include "train/exchanged_as_planned.h"
#include "train/hf_files.h"
#include "train/testing/executed_as_listed.h"
#include "train/tiny_job.h"

namespace assay::train {

namespace fs = std::filesystem;

inline constexpr std::int64_t kSequences = 24;  // per step, over all ranks

struct Kind {
  const char* name;
  spec::JobSpec job;
};

inline std::vector<Kind> kinds() {
  spec::JobSpec llama = tiny_job();
  llama.model.layers = 5;  // which no pipeline divides
  llama.train.steps = 6;
  spec::JobSpec gpt = llama;
  gpt.model = spec::testing::gpt2_shape(llama.model);
  // A bias of keys has no effect: its gradient is rounding error, which Adam would amplify.
  gpt.train.epsilon = 1e-6;
  spec::JobSpec muon = llama;
  muon.model.qk_norm = spec::QkNorm::kLearned;
  muon.train.optimizer = spec::Optimizer::kMuon;
  return {{"llama", llama}, {"gpt", gpt}, {"muon", muon}};
}

// Ranks in different ways: every layout of a job is drawn from these.
struct Spread {
  std::int64_t dp = 1;
  std::int64_t fsdp = 1;
  std::int64_t zero = 1;
  spec::ShardUnit unit = spec::ShardUnit::kBlock;
  std::int64_t pp = 1;
  spec::PipelineSchedule schedule = spec::PipelineSchedule::k1f1b;
  std::int64_t chunks = 1;
  std::int64_t tp = 1;
  bool sp = false;
  std::int64_t micro_batch = 2;
  std::int64_t cp = 1;
  std::int64_t ep = 1;

  [[nodiscard]] int data_ranks() const { return static_cast<int>(dp * fsdp * ep); }
  [[nodiscard]] int ranks() const { return static_cast<int>(dp * fsdp * pp * tp * cp * ep); }
  [[nodiscard]] std::string text() const {
    return fmt::format("dp {} fsdp {} zero {}{} pp {} x {} {} tp {}{} cp {} ep {}", dp, fsdp, zero,
                       unit == spec::ShardUnit::kModule ? " module" : "", pp, chunks,
                       spec::to_text(schedule), tp, sp ? " sp" : "", cp, ep);
  }
};

inline spec::JobSpec spread(spec::JobSpec job, const Spread& over) {
  job.layout.dp = over.dp;
  job.layout.fsdp = over.fsdp;
  job.layout.zero = over.zero;
  job.layout.unit = over.unit;
  job.batch.micro_batch = over.micro_batch;
  job.layout.pp = over.pp;
  job.layout.pp_schedule = over.schedule;
  job.layout.pp_chunks = over.chunks;
  job.layout.tp = over.tp;
  job.layout.sequence_parallel = over.sp;
  job.layout.cp = over.cp;
  job.layout.ep = over.ep;
  job.batch.accumulate = kSequences / (over.micro_batch * over.data_ranks());
  return job;
}

class RanksTest : public ::testing::Test {
 protected:
  void SetUp() override { set_ = std::make_unique<data::TokenSet>(text_tokens(dir_.path())); }

  struct Rank {
    comm::Communicator& ranks;
    RecordingReporter& reporter;
    TrainerOptions options;
    ExecutedLog* log = nullptr;
    std::int32_t vocabulary = 256;
  };
  // Everything that one rank does.
  base::Result<TrainingResult> run(const spec::JobSpec& job, Rank rank) {
    step::Choices choices = step::choices_of(job);
    ASSAY_TRY(choices.layout, step::layout_of(job.layout, rank.ranks.rank()));
    ASSAY_TRY(const auto groups, RankGroups::make(rank.ranks, choices.layout));
    const auto backend = cpu::make_cpu_backend(1, groups.get());
    ASSAY_TRY(const ExecutableStep planned,
              plan_step(job, choices, memory_budget(*backend, std::int64_t{1} << 32U)));
    ASSAY_TRY_VOID(backend->prepare(planned.program, planned.plan));
    const data::BatchReader reader(*set_, static_cast<std::uint64_t>(job.train.seed),
                                   rank.vocabulary, mask_of(planned.program));
    rank.options.out = dir_.path() / rank.options.out;
    rank.options.ranks = &rank.ranks;
    backend->log_to(rank.log);
    ASSAY_TRY(TrainingResult result,
              train(job, planned, *backend, reader, rank.options, rank.reporter));
    if (rank.log != nullptr) {
      testing::expect_executed_as_listed(*rank.log, planned.program, result.step);
      expect_exchanged_as_planned(*rank.log, job, planned.program, planned.plan, result.step);
    }
    return result;
  }

  struct RanksResult {
    std::vector<RecordingReporter> reporters;
    base::Result<void> result;
  };
  RanksResult run_ranks(const spec::JobSpec& job, int ranks, const TrainerOptions& options,
                        const std::function<void(Rank&)>& change = {}) {
    return run_spread(job, {.fsdp = ranks}, options, change);
  }
  RanksResult run_spread(const spec::JobSpec& job, const Spread& over,
                         const TrainerOptions& options,
                         const std::function<void(Rank&)>& change = {}) {
    const int ranks = over.ranks();
    RanksResult outcome{std::vector<RecordingReporter>(static_cast<std::size_t>(ranks)), {}};
    outcome.result = comm::run_local(ranks, [&](comm::Communicator& c) -> base::Result<void> {
      Rank rank{c, outcome.reporters[static_cast<std::size_t>(c.rank())], options};
      if (change) change(rank);
      ASSAY_TRY_VOID(run(spread(job, over), rank));
      return {};
    });
    return outcome;
  }

  [[nodiscard]] fs::path saved(const std::string& out, std::int64_t step) const {
    return dir_.path() / out / "checkpoints" / fmt::format("step-{}", step);
  }
  // What a checkpoint has, whichever ranks wrote it: the state, and the hash of every tensor.
  std::vector<std::string> contents(const std::string& out, std::int64_t step) {
    const auto from = checkpoint::Checkpoint::open(saved(out, step));
    EXPECT_TRUE(from.has_value()) << from.error().line();
    if (!from) return {};
    EXPECT_TRUE(from->verify().has_value());
    const checkpoint::TrainingState& state = from->manifest().state;
    std::vector<std::string> list = {fmt::format("step {} tokens {} seed {} {}", state.step,
                                                 state.tokens, state.seed, state.layout),
                                     state.data_cursor.dump() + state.extra.dump()};
    for (const char* part : {"weights", "optimizer"}) {
      const auto set = from->part(part);
      EXPECT_TRUE(set.has_value());
      for (const checkpoint::StoredTensor& tensor : set->tensors()) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(*tensor.info.bytes()));
        EXPECT_TRUE(set->read(tensor, 0, bytes).has_value());
        list.push_back(fmt::format("{} {} {} [{}] {}", part, tensor.info.name,
                                   checkpoint::dtype_name(tensor.info.dtype),
                                   fmt::join(tensor.info.shape, ", "), hash::blake3(bytes).hex()));
      }
    }
    return list;
  }
  // The hashes of a checkpoint's tensors by a reader that shares no code with ours.
  std::string read_independently(const std::string& out, std::int64_t step) {
    const fs::path list = dir_.path() / "list.txt";
    const std::string command =
        fmt::format("python3 {}/src/train/checkpoint/testing/read_pieces.py {} > {}",
                    ASSAY_SOURCE_DIR, saved(out, step).string(), list.string());
    EXPECT_EQ(std::system(command.c_str()), 0);
    const auto text = base::read_file(list, base::Bytes(std::int64_t{1} << 20U));
    EXPECT_TRUE(text.has_value() && text->find("optimizer first_moment/") != std::string::npos);
    return text.value_or("");
  }
  // The same, and by our own comparison.
  void expect_same(const std::string& a, const std::string& b, std::int64_t step) {
    EXPECT_EQ(contents(a, step), contents(b, step));
    const auto left = checkpoint::Checkpoint::open(saved(a, step));
    const auto right = checkpoint::Checkpoint::open(saved(b, step));
    ASSERT_TRUE(left && right);
    const auto found = checkpoint::diff(*left, *right);
    ASSERT_TRUE(found.has_value()) << found.error().line();
    EXPECT_TRUE(found->equal());
    EXPECT_GT(found->compared_tensors, 50);
  }
  // A job that is spread: reports and checkpoint of one rank alone, and each rank's list executed.
  void expect_trains_as(const std::string& alone, const RanksResult& one, const spec::JobSpec& job,
                        const Spread& over, const std::string& out) {
    std::vector<ExecutedLog> logs(static_cast<std::size_t>(over.ranks()));
    const RanksResult many = run_spread(job, over, {.out = out}, [&](Rank& rank) {
      rank.log = &logs[static_cast<std::size_t>(rank.ranks.rank())];
    });
    ASSERT_TRUE(many.result.has_value()) << many.result.error().line();
    for (const RecordingReporter& reporter : many.reporters) {
      ASSERT_EQ(reporter.reports.size(), 6U);
      for (std::size_t i = 0; i < 6; ++i) {
        const StepReport& found = reporter.reports[i];
        const StepReport& expected = one.reporters[0].reports[i];
        EXPECT_EQ(found.loss, expected.loss);
        EXPECT_EQ(found.z_loss, expected.z_loss);
        EXPECT_EQ(found.gradient_norm, expected.gradient_norm);
        EXPECT_EQ(found.tokens, expected.tokens);
        EXPECT_EQ(found.targets, expected.targets);
      }
    }
    expect_same(out, alone, 6);
  }

  // Reads the text as documents of so many tokens.
  void use_documents_of(std::size_t tokens) {
    fs::remove(dir_.path() / "text.tokens");
    set_ = std::make_unique<data::TokenSet>(text_tokens(dir_.path(), tokens));
  }
  // Reads the text in windows of another length.
  void use_windows_of(std::uint64_t sequence) {
    auto set = data::TokenSet::open({.paths = {(dir_.path() / "text.tokens").string()}}, sequence);
    ASSERT_TRUE(set.has_value()) << set.error().line();
    set_ = std::make_unique<data::TokenSet>(*std::move(set));
  }
  std::map<std::string, std::vector<float>> tensors(const std::string& out, std::int64_t step,
                                                    const char* part) {
    std::map<std::string, std::vector<float>> list;
    const auto from = checkpoint::Checkpoint::open(saved(out, step));
    EXPECT_TRUE(from.has_value()) << from.error().line();
    if (!from) return list;
    const auto set = from->part(part);
    EXPECT_TRUE(set.has_value());
    for (const checkpoint::StoredTensor& tensor : set->tensors()) {
      std::vector<float>& values = list[tensor.info.name];
      values.resize(static_cast<std::size_t>(*tensor.info.bytes()) / 4);
      EXPECT_TRUE(set->read(tensor, 0, std::as_writable_bytes(std::span(values))).has_value());
    }
    return list;
  }
  // Every tensor, by the norm of the difference.
  void expect_close(const std::string& a, const std::string& b, std::int64_t step, const char* part,
                    double tolerance) {
    const auto found = tensors(a, step, part);
    const auto expected = tensors(b, step, part);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, values] : expected) {
      const std::vector<float>& others = found.at(name);
      ASSERT_EQ(others.size(), values.size());
      double difference = 0;
      double norm = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<double>(values[i]);
        const double away = static_cast<double>(others[i]) - value;
        difference += away * away;
        norm += value * value;
      }
      EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(norm)) << name;
    }
  }
  base::testing::TempDir dir_;
  std::unique_ptr<data::TokenSet> set_;
  std::map<std::string, double> validated_;  // the last loss, by run
};

}  // namespace assay::train
