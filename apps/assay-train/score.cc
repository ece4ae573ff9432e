// assay-train score: the loss of a checkpoint's model on documents or on a token shard.
#include "train/score.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "assay-train/loaded_model.h"
#include "assay-train/verbs.h"
#include "base/error.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/units.h"
#include "hash/blake3.h"
#include "train/data/tokenize.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

// A folder that is removed with the object.
class ScratchFolder {
 public:
  static base::Result<ScratchFolder> make() {
    const char* parent = std::getenv("TMPDIR");
    std::string name = (fs::path(parent != nullptr ? parent : "/tmp") / "assay-score-XXXXXX");
    if (::mkdtemp(name.data()) == nullptr) {
      return base::fail(base::system_error(name, "cannot create this folder", errno));
    }
    return ScratchFolder(name);
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  explicit ScratchFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

base::Result<std::int64_t> most_tokens(const std::string& text) {
  if (text.empty()) return 0;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) {
    return base::fail(base::usage_error(
        "score --tokens", fmt::format("expected a number from 1 on, got '{}'", text)));
  }
  return value;
}

// Documents, as a shard in the scratch folder: tokenized as the model's training data was.
base::Result<data::Shard> tokenized(const ScoreOptions& options, const OpenedModel& opened,
                                    const fs::path& folder) {
  ASSAY_TRY(data::InputFiles inputs, data::input_files(options.files, {}));
  const data::TokenizeRequest request{
      .files = std::move(inputs.files),
      .output = folder / "documents.tokens",
      .rules = {.column = options.column, .bos = opened.record.bos, .eos = opened.record.eos}};
  ASSAY_TRY_VOID(data::tokenize_files(*opened.tokenizer, request));
  return data::Shard::open(request.output);
}

base::Result<data::Shard> shard_of(const ScoreOptions& options, const OpenedModel& opened,
                                   const fs::path& folder) {
  const bool is_shard = options.files.size() == 1 && options.files[0].ends_with(".tokens");
  if (!is_shard) return tokenized(options, opened, folder);
  ASSAY_TRY(data::Shard shard, data::Shard::open(options.files[0]));
  ASSAY_TRY(const train::TokenizerRecord of_shard, train::tokenizer_record(shard));
  ASSAY_TRY_VOID(train::check_tokenizer(opened.checkpoint, of_shard));
  return shard;
}

}  // namespace

base::Result<base::ExitCode> score_text(const Session& session, const ScoreOptions& options) {
  ASSAY_TRY(const std::int64_t most, most_tokens(options.tokens));
  ASSAY_TRY(const OpenedModel opened, open_model(options.checkpoint, options.tokenizer, "score"));
  ASSAY_TRY(const ScratchFolder scratch, ScratchFolder::make());
  ASSAY_TRY(const data::Shard shard, shard_of(options, opened, scratch.path()));
  const std::int64_t sequence = opened.model.context;
  constexpr std::int64_t kTokensAtOnce = 4096;
  ASSAY_TRY(
      const auto loaded,
      load_model(opened, {.purpose = step::Purpose::kLoss,
                          .sequence = sequence,
                          .micro_batch = std::max<std::int64_t>(1, kTokensAtOnce / sequence)}));
  const auto total = static_cast<std::int64_t>(shard.count());
  base::Progress progress({.label = "scoring",
                           .total = most > 0 ? std::min(most, total) : total,
                           .quiet = session.quiet});
  ASSAY_TRY(
      const train::Score found,
      train::score(*loaded->device.backend, loaded->program, shard, *opened.tokenizer,
                   {.tokens = most, .progress = [&](std::int64_t n) { progress.advance(n); }}));
  progress.finish();
  const double perplexity = std::exp(found.loss());
  session.print_json(base::Json{{"checkpoint", opened.checkpoint.folder().string()},
                                {"loss", found.loss()},
                                {"perplexity", perplexity},
                                {"bits_per_byte", found.bits_per_byte()},
                                {"tokens", found.tokens},
                                {"bytes", found.bytes},
                                {"documents", found.documents}});
  session.print(fmt::format("loss {:.4f} nats per token, perplexity {:.2f}, {:.4f} bits per byte\n",
                            found.loss(), perplexity, found.bits_per_byte()));
  session.print(fmt::format(
      "of {} tokens that stand for {}, in {} {}, by {}\n", base::grouped(found.tokens),
      base::to_text(base::Bytes(found.bytes)), base::grouped(found.documents),
      found.documents == 1 ? "document" : "documents", opened.checkpoint.folder().string()));
  return base::ExitCode::kYes;
}

}  // namespace assay::cli
