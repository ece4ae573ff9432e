// assay-train generate: continues a text with the model of a checkpoint.
#include "train/generate.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay-train/loaded_model.h"
#include "assay-train/verbs.h"
#include "base/error.h"
#include "cli/number_option.h"

namespace assay::cli {
namespace {

// A document begins as in training, with the bos token.
base::Result<std::vector<std::int32_t>> prompt_of(const OpenedModel& opened,
                                                  const std::string& text) {
  const bool needs_text = text.empty() && !opened.record.bos;  // the model needs at least one token
  ASSAY_TRY(const auto prompt, opened.tokenizer->encode(needs_text ? "\n" : text));
  std::vector<std::int32_t> tokens(prompt.begin(), prompt.end());
  if (opened.record.bos) {
    tokens.insert(tokens.begin(), static_cast<std::int32_t>(*opened.record.bos));
  }
  return tokens;
}

}  // namespace

base::Result<base::ExitCode> generate_text(const Session& session, const GenerateOptions& options) {
  ASSAY_TRY(const auto count,
            number_option<std::int64_t>("generate --tokens", options.tokens, 1, 1'000'000));
  ASSAY_TRY(const auto temperature,
            number_option<double>("generate --temperature", options.temperature, 0, 100));
  ASSAY_TRY(const auto top_p, number_option<double>("generate --top-p", options.top_p, 1e-6, 1));
  ASSAY_TRY(const auto seed, number_option<std::uint64_t>("generate --seed", options.seed, 0,
                                                          std::uint64_t{1} << 62U));
  ASSAY_TRY(OpenedModel opened, open_model(options.checkpoint, options.tokenizer, "generate"));
  ASSAY_TRY(const std::vector<std::int32_t> tokens, prompt_of(opened, options.prompt));
  ASSAY_TRY(
      const auto loaded,
      load_model(opened, {.purpose = step::Purpose::kLogits,
                          .sequence = std::min(opened.model.context,
                                               static_cast<std::int64_t>(tokens.size()) + count)}));

  std::vector<data::TokenId> made;
  std::string text;
  bool ended = false;  // the model has begun another document
  const train::SamplingOptions sampling{count, temperature, top_p, seed};
  session.print(options.prompt);
  ASSAY_TRY_VOID(train::generate(
      *loaded->device.backend, loaded->program, tokens, sampling, [&](std::int32_t next) {
        const auto token = static_cast<data::TokenId>(next);
        if (token == opened.record.eos || token == opened.record.bos) {
          ended = true;
          return false;
        }
        made.push_back(token);
        if (const auto piece = opened.tokenizer->decode(std::span(&made.back(), 1))) {
          text += *piece;
          session.print(*piece);
          if (finish_stdout() != 0) return false;
        }
        return true;
      }));
  session.print("\n");
  session.print_json(base::Json{{"checkpoint", opened.checkpoint.folder().string()},
                                {"damaged", damaged_json(opened)},
                                {"prompt", options.prompt},
                                {"text", text},
                                {"tokens", made},
                                {"ended", ended}});
  return base::ExitCode::kYes;
}

}  // namespace assay::cli
