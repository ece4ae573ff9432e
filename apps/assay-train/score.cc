// assay-train score: the loss of a checkpoint's model on documents or on token shards.
#include "train/score.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <future>

#include "assay-train/loaded_model.h"
#include "assay-train/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/figure.h"
#include "base/progress.h"
#include "base/scratch_folder.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/number_option.h"
#include "hash/blake3.h"
#include "train/data/tokenize.h"

namespace assay::cli {
namespace {

base::Result<std::int64_t> most_tokens(const std::string& text) {
  if (text.empty()) return 0;
  return number_option<std::int64_t>("score --tokens", text, 1);
}

// While this exists, the first terminating signal is only recorded, and pass_on() delivers it after
// temporary files have been removed. Another one more than a second later ends the program at once;
// sooner it is the same request: timeout(1) signals the program and then its process group.
class DelayedSignals {
 public:
  DelayedSignals() {
    struct sigaction action {};
    action.sa_handler = [](int signal) {
      const std::int64_t now = base::system_clock().monotonic_ns();
      if (is_caught && now - caught_ns > kRepeatNs) ::_exit(128 + signal);
      if (is_caught.exchange(true)) return;
      caught_ns = now;
      caught = signal;
    };
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &action, &before_[i]);
      // Signals that were ignored (nohup) stay ignored.
      if (before_[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  DelayedSignals(const DelayedSignals&) = delete;
  DelayedSignals& operator=(const DelayedSignals&) = delete;
  ~DelayedSignals() { restore(); }

  void pass_on() {
    restore();
    if (is_caught) ::raise(caught);
  }
  static inline std::atomic<bool> is_caught = false;

 private:
  void restore() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &before_[i], nullptr);
    }
  }

  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  static constexpr std::int64_t kRepeatNs = 1'000'000'000;
  static inline std::atomic<int> caught = 0;
  static inline std::atomic<std::int64_t> caught_ns = 0;
  std::array<struct sigaction, kSignals.size()> before_{};
};

constexpr const char* kTokenizedName = "documents.tokens";

// An error about the temporary shard of documents is about the documents.
template <class T>
base::Result<T> about_documents(base::Result<T> result, const ScoreOptions& options) {
  const bool temporary =
      !result && result.error().where.ends_with(fmt::format("/{}", kTokenizedName));
  if (temporary) result.error().where = fmt::format("{}", fmt::join(options.files, ", "));
  return result;
}

std::string perplexity_text(double perplexity) {
  return perplexity < 1000 ? fmt::format("{:.2f}", perplexity) : base::figure(perplexity);
}

// Tokenizes documents as the model's training data was, into a shard whose file is already
// unlinked: it stays mapped, and nothing is left behind however the program ends.
base::Result<data::Shard> tokenized(const ScoreOptions& options, const OpenedModel& opened,
                                    std::int64_t most, data::RowsWithout& without) {
  ASSAY_TRY(data::InputFiles inputs, data::input_files(options.files, {}));
  ASSAY_TRY_VOID(data::check_column("--column", inputs, options.column));
  const auto make = [&]() -> base::Result<data::Shard> {
    ASSAY_TRY(const base::ScratchFolder scratch, base::ScratchFolder::make("assay-score-"));
    const data::TokenizeRequest request{.files = std::move(inputs.files),
                                        .output = scratch.path() / kTokenizedName,
                                        .rules = {.column = options.column,
                                                  .bos = opened.record.bos,
                                                  .eos = opened.record.eos,
                                                  .skip_bad_rows = options.skip_bad_rows},
                                        .enough = static_cast<std::uint64_t>(most),
                                        .stop = &DelayedSignals::is_caught};
    ASSAY_TRY(const data::TokenizeSummary made, data::tokenize_files(*opened.tokenizer, request));
    without = made.rows_without;
    return data::Shard::open(request.output);
  };
  DelayedSignals signals;
  auto shard = make();
  signals.pass_on();
  return shard;
}

// Decided by content, because shards may have any name. A .tokens file that is not a shard is
// refused when it is opened.
base::Result<bool> are_shards(const std::vector<std::string>& files) {
  const auto is_shard = [](const std::string& file) {
    return file.ends_with(".tokens") || data::is_shard(file);
  };
  const auto shard = std::ranges::find_if(files, is_shard);
  if (shard == files.end() || std::ranges::all_of(files, is_shard)) return shard != files.end();
  return base::fail(base::usage_error(*shard, "is a token shard, but other files are documents",
                                      "score them separately"));
}

base::Result<std::vector<data::Shard>> shards_of(const ScoreOptions& options,
                                                 const OpenedModel& opened, std::int64_t most,
                                                 data::RowsWithout& without) {
  std::vector<data::Shard> shards;
  ASSAY_TRY(const bool open, are_shards(options.files));
  if (!open) {
    ASSAY_TRY(data::Shard shard, tokenized(options, opened, most, without));
    shards.push_back(std::move(shard));
    return shards;
  }
  for (const std::string& file : options.files) {
    ASSAY_TRY(data::Shard shard, data::Shard::open(file));
    ASSAY_TRY(const train::TokenizerRecord of_shard, train::tokenizer_record(shard));
    ASSAY_TRY_VOID(train::check_tokenizer(opened.checkpoint, of_shard));
    shards.push_back(std::move(shard));
  }
  return shards;
}

// Rows as long as the longest document, if the model allows it: computation for the unused rest of
// a row is wasted.
base::Result<std::int64_t> sequence_for(const spec::ModelSpec& model,
                                        const std::vector<data::Shard>& shards, std::int64_t most) {
  if (model.capacity > 0) return model.context;  // the experts' capacity depends on the length
  std::int64_t longest = 0;
  for (const data::Shard& shard : shards) {
    ASSAY_TRY(const std::int64_t row, train::longest_row(shard, {.tokens = most}));
    longest = std::max(longest, row);
  }
  constexpr std::int64_t kMultiple = 64;  // a length that kernels are optimised for
  return std::min(model.context, (longest + kMultiple - 1) / kMultiple * kMultiple);
}

// One row at a time if experts have a capacity: otherwise the padding of one row would take
// capacity from the tokens of the next.
std::int64_t rows_at_once(const spec::ModelSpec& model, std::int64_t sequence) {
  constexpr std::int64_t kTokensAtOnce = 4096;
  return model.capacity > 0 ? 1 : std::max<std::int64_t>(1, kTokensAtOnce / sequence);
}

// Over all shards together; at most `most` tokens unless it is 0.
base::Result<train::TextScore> score_all(const LoadedModel& loaded, const OpenedModel& opened,
                                         const std::vector<data::Shard>& shards, std::int64_t most,
                                         base::Progress& progress) {
  train::TextScore all;
  for (const data::Shard& shard : shards) {
    if (most > 0 && all.tokens == most) break;
    const std::int64_t left = most > 0 ? most - all.tokens : 0;
    // The hash is that of all tokens, so it is of use only where all are read.
    const bool whole = left == 0 || left >= static_cast<std::int64_t>(shard.count());
    std::future<base::Result<void>> verified;
    if (whole) verified = std::async(std::launch::async, [&shard] { return shard.verify(); });
    const auto one =
        train::score(*loaded.device.backend, loaded.program, shard, *opened.tokenizer,
                     {.tokens = left, .progress = [&](std::int64_t n) { progress.advance(n); }});
    if (verified.valid()) ASSAY_TRY_VOID(verified.get());
    if (!one) return base::fail(one.error());
    all += *one;
  }
  return all;
}

}  // namespace

base::Result<base::ExitCode> score_text(const Session& session, const ScoreOptions& options) {
  ASSAY_TRY(const std::int64_t most, most_tokens(options.tokens));
  ASSAY_TRY(OpenedModel opened, open_model(options.checkpoint, options.tokenizer, "score"));
  data::RowsWithout without;
  ASSAY_TRY(const std::vector<data::Shard> shards, shards_of(options, opened, most, without));
  ASSAY_TRY(const std::int64_t sequence,
            about_documents(sequence_for(opened.model, shards, most), options));
  ASSAY_TRY(const auto loaded,
            load_model(opened, {.purpose = step::Purpose::kLoss,
                                .sequence = sequence,
                                .micro_batch = rows_at_once(opened.model, sequence)}));
  std::int64_t total = 0;
  for (const data::Shard& shard : shards) total += static_cast<std::int64_t>(shard.count());
  base::Progress progress({.label = "scoring",
                           .total = most > 0 ? std::min(most, total) : total,
                           .quiet = session.quiet});
  ASSAY_TRY(const train::TextScore found,
            about_documents(score_all(*loaded, opened, shards, most, progress), options));
  progress.finish();
  if (!std::isfinite(found.loss())) {
    return base::fail(base::failed_error(opened.checkpoint.folder(),
                                         fmt::format("its loss over this text is {}", found.loss()),
                                         "its weights have diverged: use an earlier checkpoint"));
  }
  const double perplexity = std::exp(found.loss());
  session.print_json(base::Json{{"checkpoint", opened.checkpoint.folder().string()},
                                {"damaged", damaged_json(opened)},
                                {"loss", found.loss()},
                                {"perplexity", perplexity},
                                {"bits_per_byte", found.bits_per_byte()},
                                {"tokens", found.tokens},
                                {"bytes", found.bytes},
                                {"documents", found.documents},
                                {"rows_without_text", without.null},
                                {"bad_rows_skipped", without.bad}});
  session.print(fmt::format("loss {:.4f} nats per token, perplexity {}, {:.4f} bits per byte\n",
                            found.loss(), perplexity_text(perplexity), found.bits_per_byte()));
  session.print(fmt::format(
      "over {} ({} of text) in {}, by {}{}\n", base::counted(found.tokens, "token"),
      base::to_text(base::Bytes(found.bytes)), base::counted(found.documents, "document"),
      opened.checkpoint.folder().string(), without.text()));
  return base::ExitCode::kYes;
}

}  // namespace assay::cli
