// assay-train generate: continues a text with the model of a checkpoint.
#include "train/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "assay-train/device.h"
#include "assay-train/verbs.h"
#include "base/error.h"
#include "train/checkpoint/checkpoint.h"
#include "train/data/load_tokenizer.h"
#include "train/resume.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

template <class T>
base::Result<T> number(const char* option, const std::string& text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(value >= least && value <= most)) {
    return base::fail(base::usage_error(
        fmt::format("generate {}", option),
        fmt::format("expected a number from {} to {}, got '{}'", least, most, text)));
  }
  return value;
}

// Of several, the newest that is intact.
base::Result<checkpoint::Checkpoint> open_checkpoint(const fs::path& path) {
  if (checkpoint::is_checkpoint(path)) return checkpoint::open_newest(path);
  ASSAY_TRY(checkpoint::Latest latest, checkpoint::latest(checkpoint::root_of(path)));
  if (!latest.checkpoint) {
    return base::fail(
        base::usage_error(path.string(), "has no intact checkpoint", "`assay train` writes them"));
  }
  return *std::move(latest.checkpoint);
}

}  // namespace

base::Result<base::ExitCode> generate_text(const Session& session, const GenerateOptions& options) {
  ASSAY_TRY(const auto count, number<std::int64_t>("--tokens", options.tokens, 1, 1'000'000));
  ASSAY_TRY(const auto temperature, number<double>("--temperature", options.temperature, 0, 100));
  ASSAY_TRY(const auto seed,
            number<std::uint64_t>("--seed", options.seed, 0, std::uint64_t{1} << 62U));
  ASSAY_TRY(const checkpoint::Checkpoint from, open_checkpoint(options.checkpoint));
  ASSAY_TRY(const spec::ModelSpec model, train::model_of(from));
  ASSAY_TRY(const auto tokenizer, data::load_tokenizer({.source = options.tokenizer}));
  if (tokenizer->vocabulary() > static_cast<std::uint64_t>(model.vocab)) {
    return base::fail(base::usage_error(
        "generate --tokenizer",
        fmt::format("has {} tokens, but the model knows {}", tokenizer->vocabulary(), model.vocab),
        "use the vocabulary that the model was trained with"));
  }
  ASSAY_TRY(const auto prompt, tokenizer->encode(options.prompt.empty() ? "\n" : options.prompt));
  std::vector<std::int32_t> tokens(prompt.begin(), prompt.end());

  spec::JobSpec job;
  job.model = model;
  ASSAY_TRY(const Device device, choose_device("auto", job));
  const step::Choices choices{
      .purpose = step::Purpose::kLogits,
      .numerics = step::numerics_of(job.train.precision),
      .sequence = std::min(model.context, static_cast<std::int64_t>(tokens.size()) + count)};
  ASSAY_TRY(const step::Program program, step::build(model, choices));
  const step::MemoryPlan plan = step::plan_memory(program);
  ASSAY_TRY_VOID(device.backend->prepare(program, plan));
  ASSAY_TRY_VOID(train::restore_weights(*device.backend, program, from));

  std::vector<data::TokenId> made;
  std::string text;
  const train::SamplingOptions sampling{count, temperature, seed};
  session.print(options.prompt);
  ASSAY_TRY_VOID(
      train::generate(*device.backend, program, tokens, sampling, [&](std::int32_t next) {
        made.push_back(static_cast<data::TokenId>(next));
        if (const auto piece = tokenizer->decode(std::span(&made.back(), 1))) {
          text += *piece;
          session.print(*piece);
          std::fflush(stdout);
        }
        return true;
      }));
  session.print("\n");
  session.print_json(base::Json{{"prompt", options.prompt}, {"text", text}, {"tokens", made}});
  return base::ExitCode::kYes;
}

}  // namespace assay::cli
