#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "comm/local.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/folder_name.h"
#include "train/data/loader.h"
#include "train/job_data.h"
#include "train/resume.h"
#include "train/run_folder.h"
#include "train/run_settings.h"
#include "train/saver.h"
#include "train/skipped_steps.h"
#include "train/step_settings.h"
#include "train/tokenizer_record.h"
#include "train/validation.h"
#include "train/verify_together.h"

namespace assay::train {
namespace {

double scalar(const Scalars& scalars, step::Scalar which) {
  return static_cast<double>(scalars[static_cast<std::size_t>(which)]);
}

constexpr std::int64_t kNoCheckpoint = -1;

class Trainer {
 public:
  Trainer(const spec::JobSpec& job, const step::Program& program, Backend& backend,
          const data::BatchReader& reader, TokenizerRecord tokenizer, const TrainerOptions& options,
          Reporter& reporter)
      : job_(job),
        program_(program),
        backend_(backend),
        reader_(reader),
        options_(options),
        reporter_(reporter),
        single_rank_(comm::make_single_rank()),
        ranks_(options.ranks != nullptr ? *options.ranks : *single_rank_),
        steps_(spec::training_steps(job).value_or(0)),
        tokenizer_(std::move(tokenizer)),
        data_(data_of(job, reader)),
        saver_(job_, {options.out / "checkpoints", steps_, options.clock, tokenizer_, data_},
               ranks_, reporter) {
    if (options.validation == nullptr || job.train.validate_every == 0) return;
    validation_.emplace(*options.validation, program, job.train.validate_tokens);
  }

  base::Result<TrainingResult> run() {
    ASSAY_TRY_VOID(check_validation_tokenizer(reader_, options_.validation));
    ASSAY_TRY_VOID(start());
    ASSAY_TRY_VOID(saver_.check_disk(program_, position_.step + 1,
                                     std::min(steps_, options_.stop_after.value_or(steps_))));
    for (const std::string& note : backend_.take_notes()) reporter_.note(note);
    reporter_.began(position_.step + 1, steps_);
    begin_startup_part("first_step", "making the first step");
    skipped_.emplace(job_.train.max_skipped, position_.step);
    data::Loader loader(reader_, {.share = share_of(program_), .cursor = position_.cursor});
    TrainingResult result;
    bool due = false;  // a checkpoint
    const std::int64_t last = std::min(steps_, options_.stop_after.value_or(steps_));
    if (position_.step >= last && position_.step < steps_) result.ending = Ending::kStopAfter;
    while (position_.step < last) {
      begins(Doing::kStep, position_.step + 1);
      ASSAY_TRY(const StepReport report, one_step(loader));
      end_start();
      reporter_.stepped(report);
      for (const std::string& note : backend_.take_notes()) reporter_.note(note);
      expect_save(report.seconds, last);
      result.loss = report.loss;
      skipped_->counts(report.step, report.skipped);
      if (report.skipped &&
          (job_.train.non_finite == spec::NonFinite::kStop || skipped_->too_many())) {
        result.ending = Ending::kNotFinite;
        break;
      }
      if (validation_ && validation_due()) {
        begins(Doing::kValidation, position_.step);
        ASSAY_TRY_VOID(validate(result));
      }
      ASSAY_TRY(const Agreed agreed, exchange_status(report.step));
      if (agreed.stop) {
        result.ending = Ending::kStopped;
        break;
      }
      if (position_.step == last) {
        result.ending = position_.step < steps_ ? Ending::kStopAfter : Ending::kFinished;
        break;
      }
      const auto every = job_.checkpoint.every;
      due = due || (every && position_.step % *every == 0) || agreed.retry_save;
      // After a skipped step it is not known whether the weights are any good.
      if (due && !report.skipped && position_.step < steps_) {
        ASSAY_TRY_VOID(save());
        due = false;
      }
    }
    ASSAY_TRY_VOID(finish(result));
    return result;
  }

 private:
  // Saves the last step, unless its weights are useless.
  base::Result<void> finish(TrainingResult& result) {
    result.step = position_.step;
    result.skipped = skipped_->in_a_row();
    ASSAY_TRY(const bool useful, weights_are_useful());
    const std::filesystem::path root = options_.out / "checkpoints";
    if (useful && (result.skipped == 0 || skipped_->any_finite())) {
      begins(Doing::kLastCheckpoint, position_.step);
      ASSAY_TRY_VOID(save_last());
      result.checkpoint = root / fmt::format("step-{}", position_.step);
      return {};
    }
    result.ending = Ending::kNotFinite;
    if (auto written = saver_.finish(); !written) reporter_.note(written.error().line());
    if (ranks_.rank() != 0) return {};
    ASSAY_TRY(std::vector<std::int64_t> steps, checkpoint::steps_in(root));
    // The weights after that step are those that give no finite loss.
    while (!useful && !steps.empty() && steps.back() >= skipped_->weights_of()) {
      result.has_useless = true;
      steps.pop_back();
    }
    if (!steps.empty()) result.checkpoint = root / fmt::format("step-{}", steps.back());
    return {};
  }

  // A step can be skipped for its own tokens, or because the weights have diverged, though each of
  // them is still a number: then the loss of other tokens is not finite, either, or so large that
  // no step after it has finite gradients.
  base::Result<bool> weights_are_useful() {
    if (skipped_->in_a_row() == 0) return true;
    if (skipped_->too_many()) return false;
    const Validation sample(reader_.set(), program_, 1);
    ASSAY_TRY(const std::optional<double> loss, sample.loss(backend_, nullptr, &ranks_));
    return loss && std::isfinite(*loss);
  }

  // Rank 0 owns the checkpoint folder and broadcasts which checkpoint to start from, so that all
  // ranks start from the same one. All of them check its contents, each a share of the files.
  base::Result<void> start() {
    ASSAY_CHECK(ranks_.ranks() == program_.choices.layout.ranks(),
                "the program must be built for this number of ranks");
    const std::filesystem::path root = options_.out / "checkpoints";
    std::vector<std::int64_t> steps;  // newest last
    if (ranks_.rank() == 0) {
      ASSAY_TRY_VOID(saver_.open());
      ASSAY_TRY(steps, checkpoint::steps_in(root));
      if (!options_.resume && !steps.empty())
        return base::fail(already_has_checkpoints(options_.out));
    }
    bool damaged = false;
    while (true) {
      ASSAY_TRY(const std::int64_t step,
                ranks_.broadcast_value(steps.empty() ? kNoCheckpoint : steps.back()));
      if (ranks_.rank() != 0 && !damaged) ASSAY_TRY_VOID(saver_.open());
      if (step == kNoCheckpoint && damaged) {
        return base::fail(base::failed_error(root.string(), "none of its checkpoints can be used",
                                             "move them away to start at step 1"));
      }
      if (step == kNoCheckpoint) return start_from_scratch();
      if (!steps.empty()) steps.pop_back();
      begin_startup_part("checkpoint", "reading and checking the checkpoint");
      // A single rank restores it while it is being verified, so that each byte is read from disk
      // only once.
      std::optional<base::Result<Position>> restored;
      const auto read_in = [&](const checkpoint::Checkpoint& from) {
        restored = restore(backend_, program_, job_, from,
                           {options_.new_data, options_.new_optimizer, data_});
      };
      ASSAY_TRY(auto checked,
                verify_together(root / fmt::format("step-{}", step), ranks_, options_.threads,
                                ranks_.ranks() == 1 ? WhileChecked(read_in) : nullptr));
      if (checked.whole) {
        ASSAY_TRY_VOID(check_tokenizer(*checked.whole, tokenizer_));
        if (!restored) read_in(*checked.whole);
        ASSAY_TRY(position_, *std::move(restored));
        ASSAY_TRY(const std::string note, backend_.adopt(saved_algorithms(*checked.whole)));
        if (!note.empty() && ranks_.rank() == 0) {
          reporter_.note(fmt::format("{}: {}", checked.whole->folder().string(), note));
        }
        saved_ = position_.step;
        const std::string recipe = keep_recipe(*checked.whole, job_, data_);
        if (!recipe.empty() && ranks_.rank() == 0) {
          reporter_.note(fmt::format("{}: {}", checked.whole->folder().string(), recipe));
        }
        if (ranks_.rank() == 0) reporter_.resumed(checked.whole->folder(), position_.step);
        return {};
      }
      damaged = true;
      if (ranks_.rank() == 0) reporter_.note(checked.damage);
    }
  }

  // With the weights of another run, whatever its layout, data and optimizer.
  base::Result<void> start_from_weights() {
    begin_startup_part("checkpoint", "reading and checking the checkpoint");
    std::filesystem::path folder = options_.from;
    if (!checkpoint::is_checkpoint(folder)) {
      folder = checkpoint::root_of(folder);
      std::int64_t newest = kNoCheckpoint;
      if (ranks_.rank() == 0) {
        ASSAY_TRY(const std::vector<std::int64_t> steps, checkpoint::steps_in(folder));
        if (!steps.empty()) newest = steps.back();
      }
      ASSAY_TRY(newest, ranks_.broadcast_value(newest));
      folder /= checkpoint::step_name(newest);
    }
    ASSAY_TRY(const Verified checked, verify_together(folder, ranks_, options_.threads));
    if (!checked.whole) {
      return base::fail(base::failed_error("train --from", checked.damage,
                                           "name an earlier checkpoint of that run"));
    }
    ASSAY_TRY_VOID(check_model(*checked.whole, program_.model));
    ASSAY_TRY_VOID(check_tokenizer(*checked.whole, tokenizer_));
    if (ranks_.rank() == 0) {
      reporter_.note(fmt::format("a new run with the weights of {}", folder.string()));
    }
    return restore_weights(backend_, program_, *checked.whole);
  }

  base::Result<void> start_from_scratch() {
    if (options_.resume && ranks_.rank() == 0) {
      reporter_.note("there is no checkpoint yet: starting at step 1");
    }
    if (!options_.from.empty()) return start_from_weights();
    begin_startup_part("weights", "making initial weights");
    return initialise(backend_, program_, static_cast<std::uint64_t>(job_.train.seed),
                      options_.threads);
  }

  void begins(Doing doing, std::int64_t step) const {
    if (options_.begins) options_.begins(doing, step);
  }

  void begin_startup_part(const char* part, const char* what) {
    if (options_.startup != nullptr) options_.startup->begin(part, what);
  }

  void end_start() {
    if (options_.startup == nullptr || std::exchange(started_, true)) return;
    options_.startup->end();
    reporter_.started(*options_.startup);
  }

  // A backend may need up to a minute to prepare for a copy of the state, which slows steps down:
  // this starts when the next checkpoint is near.
  void expect_save(double step_seconds, std::int64_t last) {
    constexpr double kNear_s = 120;
    std::int64_t next = last;
    if (const auto every = job_.checkpoint.every) {
      next = std::min(next, (position_.step / *every + 1) * *every);
    }
    const double left_s = static_cast<double>(next - position_.step) * step_seconds;
    if (left_s <= kNear_s) backend_.expect_copies();
  }

  // Windows that all ranks together read in a step.
  [[nodiscard]] std::uint64_t step_windows() const {
    return share_of(program_).stride() * static_cast<std::uint64_t>(program_.choices.accumulate);
  }

  // Over all ranks: each computes the number itself, from where documents begin, so that no
  // communication is needed before the first gradient and every layout divides by the same number.
  [[nodiscard]] std::int64_t counted_targets() const {
    return static_cast<std::int64_t>(reader_.counted_targets(position_.cursor, step_windows()));
  }

  // Exchanged after every step: whether a rank was asked to stop, or must save once more; and rank
  // 0 receives the measurements of all ranks.
  struct Agreed {
    bool stop = false;
    bool retry_save = false;
  };
  base::Result<Agreed> exchange_status(std::int64_t step) {
    const Agreed mine{.stop = options_.stop != nullptr && options_.stop->load(),
                      .retry_save = saver_.retry_due()};
    if (ranks_.ranks() == 1) return mine;
    struct StepMessage {
      RankSample sample;
      std::int32_t stop = 0;
      std::int32_t retry_save = 0;
    };
    const StepMessage own{sample_, mine.stop ? 1 : 0, mine.retry_save ? 1 : 0};
    std::vector<StepMessage> messages(static_cast<std::size_t>(ranks_.ranks()));
    ASSAY_TRY_VOID(ranks_.all_gather(&own, messages.data(), sizeof own, comm::ElementType::kU8));
    if (ranks_.rank() == 0) {
      std::vector<RankSample> samples;
      for (const StepMessage& message : messages) samples.push_back(message.sample);
      reporter_.ranks_stepped(step, samples);
    }
    return Agreed{.stop = std::ranges::any_of(
                      messages, [](const StepMessage& message) { return message.stop != 0; }),
                  .retry_save = std::ranges::any_of(messages, [](const StepMessage& message) {
                    return message.retry_save != 0;
                  })};
  }

  base::Result<StepReport> one_step(data::Loader& loader) {
    if (options_.meter != nullptr) options_.meter->begin_step();
    const std::int64_t start_ns = options_.clock->monotonic_ns();
    const std::int64_t counted = counted_targets();
    const StepSettings now = settings_of_step(job_.train, position_.step + 1, steps_, counted);
    loaded_ = 0;
    ASSAY_TRY(const Scalars scalars,
              run_step(
                  backend_, program_, now,
                  [&](std::int32_t micro, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> targets) -> base::Result<void> {
                    ASSAY_TRY(const data::Batch* batch, batch_of(micro, loader));
                    std::ranges::copy(batch->tokens, tokens.begin());
                    std::ranges::copy(batch->targets, targets.begin());
                    return {};
                  },
                  [&](std::int32_t micro, std::span<std::int32_t> documents) -> base::Result<void> {
                    ASSAY_TRY(const data::Batch* batch, batch_of(micro, loader));
                    std::ranges::copy(batch->documents, documents.begin());
                    return {};
                  }));
    position_.step += 1;
    position_.tokens += program_.global_step_tokens();
    position_.cursor += step_windows();
    const double count = std::max(1.0, scalar(scalars, step::Scalar::kCount));
    StepReport report{.step = position_.step, .steps = steps_, .tokens = position_.tokens};
    if (program_.choices.document_mask) report.targets = counted;
    report.loss = scalar(scalars, step::Scalar::kLossSum) / count;
    report.z_loss = scalar(scalars, step::Scalar::kZLossSum) / count;
    report.gradient_norm = scalar(scalars, step::Scalar::kNorm);
    report.skipped = scalar(scalars, step::Scalar::kNonFinite) != 0;
    report.learning_rate = now.learning_rate;
    if (program_.model.is_moe() && ranks_.rank() == 0) {
      ASSAY_TRY(report.experts, experts_of(scalars));
    }
    report.seconds = seconds_since(start_ns);
    report.tokens_per_s = static_cast<double>(program_.global_step_tokens()) / report.seconds;
    if (options_.meter != nullptr) sample_ = options_.meter->end_step(report.seconds);
    return report;
  }

  // Stages with several chunks of layers read a micro-batch more than once, so with a document mask
  // the batches of a step are kept; otherwise each is read once, and a single buffer is enough.
  base::Result<const data::Batch*> batch_of(std::int32_t micro, data::Loader& loader) {
    const std::size_t places =
        program_.choices.document_mask ? static_cast<std::size_t>(program_.choices.accumulate) : 1;
    batches_.resize(places);
    for (; loaded_ <= micro; ++loaded_) {
      ASSAY_TRY_VOID(loader.next(batches_[static_cast<std::size_t>(loaded_) % places]));
    }
    return &batches_[static_cast<std::size_t>(micro) % places];
  }

  base::Result<ExpertLoad> experts_of(const Scalars& scalars) {
    std::vector<float> loads(static_cast<std::size_t>(program_.loads.elements()));
    ASSAY_TRY_VOID(backend_.read(program_.loads, std::as_writable_bytes(std::span(loads))));
    ExpertLoad found = expert_load(loads, program_.model.experts);
    const double tokens = static_cast<double>(program_.global_step_tokens()) *
                          static_cast<double>(program_.model.moe_layers());
    found.balance_loss = scalar(scalars, step::Scalar::kBalanceSum) / tokens;
    found.router_z_loss = scalar(scalars, step::Scalar::kRouterZSum) / tokens;
    found.dropped = scalar(scalars, step::Scalar::kDropped) / tokens /
                    static_cast<double>(program_.model.experts_per_token);
    return found;
  }

  // The last step is always validated.
  [[nodiscard]] bool validation_due() const {
    return position_.step % job_.train.validate_every == 0 || position_.step == steps_;
  }

  // Every rank reads the same windows, so nothing has to be summed. With several ranks validation
  // is not interrupted: a stop request may reach one rank before the others.
  base::Result<void> validate(TrainingResult& result) {
    const std::int64_t start_ns = options_.clock->monotonic_ns();
    const std::atomic<bool>* stop = ranks_.ranks() == 1 ? options_.stop : nullptr;
    ASSAY_TRY(const std::optional<double> loss, validation_->loss(backend_, stop, &ranks_));
    if (!loss) return {};
    result.validation_loss = loss;
    reporter_.validated({.step = position_.step,
                         .loss = *loss,
                         .tokens = validation_->tokens(),
                         .seconds = seconds_since(start_ns)});
    return {};
  }

  [[nodiscard]] double seconds_since(std::int64_t start_ns) const {
    return static_cast<double>(options_.clock->monotonic_ns() - start_ns) / 1e9;
  }

  // No later checkpoint can make up for it, so it is tried a few times.
  base::Result<void> save_last() {
    constexpr int kTries = 3;
    for (int tries = 1;; ++tries) {
      if (saved_ != position_.step || tries > 1) ASSAY_TRY_VOID(save());
      auto written = saver_.finish();
      ASSAY_TRY(const bool failed, ranks_.any_rank(!written));
      if (!failed) return {};
      if (tries == kTries && written) {
        return base::fail(base::failed_error((options_.out / "checkpoints").string(),
                                             "other ranks could not write the last checkpoint"));
      }
      if (tries == kTries) return written;
      std::this_thread::sleep_for(std::chrono::seconds(tries));
    }
  }

  base::Result<void> save() {
    saved_ = position_.step;
    return saver_.save(backend_, program_, position_);
  }

  spec::JobSpec job_;
  const step::Program& program_;
  Backend& backend_;
  const data::BatchReader& reader_;
  const TrainerOptions& options_;
  Reporter& reporter_;
  std::unique_ptr<comm::Communicator> single_rank_;
  comm::Communicator& ranks_;
  std::int64_t steps_;
  Position position_;
  RankSample sample_;                 // of the last step
  std::vector<data::Batch> batches_;  // of this step
  std::int32_t loaded_ = 0;           // micro-batches of this step loaded so far
  std::optional<Validation> validation_;
  std::optional<SkippedSteps> skipped_;
  std::int64_t saved_ = 0;  // the step of the newest checkpoint
  bool started_ = false;
  TokenizerRecord tokenizer_;  // of the data
  base::Json data_;            // what the data is
  Saver saver_;
};

}  // namespace

base::Result<TrainingResult> train(const spec::JobSpec& job, const ExecutableStep& planned,
                                   Backend& backend, const data::BatchReader& reader,
                                   const TrainerOptions& options, Reporter& reporter) {
  if (!spec::training_steps(job)) {
    return base::fail(base::usage_error("train.steps", "the job sets no length",
                                        "set train.steps or train.tokens"));
  }
  const auto run = [&]() -> base::Result<TrainingResult> {
    ASSAY_TRY(TokenizerRecord tokenizer, tokenizer_record(reader));
    return Trainer(job, planned.program, backend, reader, std::move(tokenizer), options, reporter)
        .run();
  };
  auto result = run();
  // Before its groups are destroyed, so that the others end with the reason, not with its
  // consequences.
  if (!result && options.ranks != nullptr) options.ranks->abort(result.error());
  return result;
}

}  // namespace assay::train
