#include "assay-train/loaded_model.h"

#include <fmt/format.h>

#include "base/error.h"
#include "train/data/load_tokenizer.h"
#include "train/resume.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

// If there are several, the newest intact one.
base::Result<checkpoint::Checkpoint> open_checkpoint(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_directory(path, ignored)) {
    return base::fail(base::usage_error(path.string(), "is a file, not a checkpoint",
                                        "name a folder that `assay train` wrote"));
  }
  if (checkpoint::is_checkpoint(path)) return checkpoint::open_newest(path);
  ASSAY_TRY(checkpoint::Latest latest, checkpoint::latest(checkpoint::root_of(path)));
  if (!latest.checkpoint) {
    return base::fail(
        base::usage_error(path.string(), "has no intact checkpoint", "`assay train` writes them"));
  }
  return *std::move(latest.checkpoint);
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
  ASSAY_TRY(checkpoint::Checkpoint from, open_checkpoint(path));
  ASSAY_TRY(spec::ModelSpec model, train::model_of(from));
  ASSAY_TRY(train::TokenizerRecord record, train::tokenizer_record(from));
  ASSAY_TRY(auto made, tokenizer_of(from, record, tokenizer, model, option));
  if (made->vocabulary() > static_cast<std::uint64_t>(model.vocab)) {
    return base::fail(base::usage_error(
        option,
        fmt::format("has {} tokens, but the model knows {}", made->vocabulary(), model.vocab),
        "use the vocabulary that the model was trained with"));
  }
  return OpenedModel{std::move(from), model, std::move(record), std::move(made)};
}

base::Result<std::unique_ptr<LoadedModel>> load_model(const OpenedModel& opened,
                                                      step::Choices choices) {
  spec::JobSpec job;
  job.model = opened.model;
  auto loaded = std::make_unique<LoadedModel>();
  ASSAY_TRY(loaded->device, choose_device("auto", job));
  choices.numerics = step::numerics_of(job.train.precision);
  ASSAY_TRY(loaded->program, step::build(opened.model, choices));
  loaded->plan = step::plan_memory(loaded->program);
  train::Backend& backend = *loaded->device.backend;
  ASSAY_TRY_VOID(backend.prepare(loaded->program, loaded->plan));
  ASSAY_TRY_VOID(train::restore_weights(backend, loaded->program, opened.checkpoint));
  return loaded;
}

}  // namespace assay::cli
