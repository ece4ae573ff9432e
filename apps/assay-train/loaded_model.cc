#include "assay-train/loaded_model.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/terminal.h"
#include "base/text.h"
#include "spec/load.h"
#include "train/checkpoint/verification.h"
#include "train/data/load_tokenizer.h"
#include "train/resume.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

// A checkpoint that was named by itself: then there is no other to use in its place.
bool is_one(const fs::path& named) {
  return checkpoint::is_checkpoint(named);
}

// The checkpoint itself, or the newest of a run, before the step if one is given, whose files are
// complete. Their contents are verified when they are read.
base::Result<checkpoint::Checkpoint> open_checkpoint(const fs::path& named,
                                                     std::optional<std::int64_t> before,
                                                     std::vector<base::Error>& damaged) {
  std::error_code ignored;
  if (fs::exists(named, ignored) && !fs::is_directory(named, ignored)) {
    return base::fail(base::usage_error(named.string(), "is a file, not a checkpoint",
                                        "name a folder that `assay train` wrote"));
  }
  if (is_one(named)) return checkpoint::open_newest(named);
  ASSAY_TRY(checkpoint::Latest latest,
            checkpoint::latest(checkpoint::root_of(named), checkpoint::Check::kLengths, before));
  for (base::Error& error : latest.damaged) damaged.push_back(std::move(error));
  if (latest.checkpoint) return *std::move(latest.checkpoint);
  return base::fail(base::usage_error(
      named.string(),
      damaged.empty() ? "has no checkpoint"
                      : fmt::format("has no intact checkpoint: {}", damaged.front().line()),
      "`assay train` writes them"));
}

// An older checkpoint can be used only if the device was prepared, and texts were read, as it
// needs.
base::Result<void> check_same(const OpenedModel& opened) {
  ASSAY_TRY(const spec::ModelSpec model, train::model_of(opened.checkpoint));
  ASSAY_TRY(const train::TokenizerRecord record, train::tokenizer_record(opened.checkpoint));
  const auto text = [](const train::TokenizerRecord& one) {
    return one.definition == nullptr ? std::string() : *one.definition;
  };
  if (spec::model_toml(model) == spec::model_toml(opened.model) &&
      text(record) == text(opened.record))
    return {};
  return base::fail(base::failed_error(
      opened.damaged.back().where,
      fmt::format("{}, and {} has another model or tokenizer", opened.damaged.back().what,
                  opened.checkpoint.folder().string()),
      "name the checkpoint to use"));
}

// A damaged checkpoint is passed over only if another one of the run takes its place.
void report_damaged(const OpenedModel& opened) {
  for (const base::Error& error : opened.damaged) {
    base::write_stderr(fmt::format(
        "assay: {}\n", base::printable(fmt::format("{}: {}; using {}", error.where, error.what,
                                                   opened.checkpoint.folder().string()))));
  }
}

base::Result<std::unique_ptr<const data::Tokenizer>> tokenizer_of(
    const checkpoint::Checkpoint& from, const train::TokenizerRecord& record,
    const std::string& given, const spec::ModelSpec& model, const std::string& option) {
  if (given.empty() && record.definition != nullptr) return train::make_tokenizer(record);
  constexpr std::int64_t kBytes = 256;
  if (given.empty() && model.vocab != kBytes) {
    return base::fail(base::usage_error(
        from.folder().string(), "does not say which tokenizer it was trained with",
        "add --tokenizer FILE: it was trained on shards without one"));
  }
  const data::TokenizerChoice choice{.source = given.empty() ? "bytes" : given,
                                     .has_options = false};
  if (record.definition == nullptr) return data::load_tokenizer(choice);
  ASSAY_TRY(const bool same, train::is_same_tokenizer(record, choice));
  if (same) return train::make_tokenizer(record);
  return base::fail(base::usage_error(
      fmt::format("{} {}", option, given),
      fmt::format("is not the tokenizer that {} was trained with", from.folder().string()),
      "leave --tokenizer out: the checkpoint has its own"));
}

}  // namespace

base::Result<OpenedModel> open_model(const fs::path& path, const std::string& tokenizer,
                                     const std::string& verb) {
  const std::string option = verb + " --tokenizer";
  std::vector<base::Error> damaged;
  ASSAY_TRY(checkpoint::Checkpoint from, open_checkpoint(path, {}, damaged));
  auto record = train::tokenizer_record(from);
  while (!record && !is_one(path)) {
    damaged.push_back(record.error());
    ASSAY_TRY(from, open_checkpoint(path, from.manifest().state.step, damaged));
    record = train::tokenizer_record(from);
  }
  if (!record) return base::fail(record.error());
  ASSAY_TRY(spec::ModelSpec model, train::model_of(from));
  ASSAY_TRY(auto made, tokenizer_of(from, *record, tokenizer, model, option));
  if (made->vocabulary() > static_cast<std::uint64_t>(model.vocab)) {
    return base::fail(base::usage_error(
        option,
        fmt::format("has {} tokens, but the model knows {}", made->vocabulary(), model.vocab),
        "use the vocabulary that the model was trained with"));
  }
  return OpenedModel{
      path, std::move(from), model, *std::move(record), std::move(made), std::move(damaged)};
}

base::Result<std::unique_ptr<LoadedModel>> load_model(OpenedModel& opened, step::Choices choices) {
  spec::JobSpec job;
  job.model = opened.model;
  auto loaded = std::make_unique<LoadedModel>();
  ASSAY_TRY(loaded->device, choose_device("auto", job));
  choices.numerics = step::numerics_of(job.train.precision);
  ASSAY_TRY(loaded->program, step::build(opened.model, choices));
  loaded->plan = step::plan_memory(loaded->program);
  train::Backend& backend = *loaded->device.backend;
  ASSAY_TRY_VOID(backend.prepare(loaded->program, loaded->plan));
  while (true) {
    checkpoint::Verification verification(opened.checkpoint, {"weights"});
    const auto read = train::restore_weights(backend, loaded->program, opened.checkpoint);
    const auto whole = verification.finish();
    if (whole) {
      ASSAY_TRY_VOID(read);
      report_damaged(opened);
      return loaded;
    }
    // A checkpoint that cannot be read may be intact.
    const bool is_damaged = whole.error().code == base::ExitCode::kNo;
    if (is_one(opened.named) || !is_damaged) return base::fail(whole.error());
    opened.damaged.push_back(whole.error());
    ASSAY_TRY(
        opened.checkpoint,
        open_checkpoint(opened.named, opened.checkpoint.manifest().state.step, opened.damaged));
    ASSAY_TRY_VOID(check_same(opened));
  }
}

base::Json damaged_json(const OpenedModel& opened) {
  base::Json list = base::Json::array();
  for (const base::Error& error : opened.damaged) {
    list.push_back({{"where", error.where}, {"what", error.what}});
  }
  return list;
}

}  // namespace assay::cli
