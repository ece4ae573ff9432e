#include "assay/checkpoint/hf.h"

#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "train/checkpoint/checkpoint.h"
#include "train/hf_files.h"

namespace assay::cli {
namespace {

struct HfOptions {
  std::string from;
  std::string to;
};

base::Result<base::ExitCode> export_weights(const Session& session, const HfOptions& options) {
  ASSAY_TRY(const checkpoint::Checkpoint from, checkpoint::Checkpoint::open(options.from));
  ASSAY_TRY_VOID(train::export_hf(from, options.to));
  session.print_json(base::Json{{"from", options.from}, {"to", options.to}});
  session.print(fmt::format("wrote {}/config.json and model.safetensors\n", options.to));
  return base::ExitCode::kYes;
}

base::Result<base::ExitCode> import_weights(const Session& session, const HfOptions& options) {
  ASSAY_TRY(const std::filesystem::path made, train::import_hf(options.from, options.to));
  session.print_json(base::Json{{"from", options.from}, {"checkpoint", made.string()}});
  session.print(fmt::format("wrote {}\n", made.string()));
  session.next(fmt::format("assay train JOB --out {} --resume", options.to));
  return base::ExitCode::kYes;
}

}  // namespace

Verb export_hf_verb(const Session& session) {
  const auto options = std::make_shared<HfOptions>();
  return {.name = "export-hf",
          .description = "export a checkpoint's weights for Hugging Face transformers",
          .examples = {"assay checkpoint export-hf demo-run/checkpoints/step-2 hf"},
          .arguments = {{"CHECKPOINT", "a checkpoint folder", &options->from, true, {}, true},
                        {"DIR", "the folder to create", &options->to, true, {}, true}},
          .action = [&session, options] { return export_weights(session, *options); }};
}

Verb import_hf_verb(const Session& session) {
  const auto options = std::make_shared<HfOptions>();
  return {
      .name = "import-hf",
      .description = "start a run from weights of Hugging Face transformers",
      .examples = {"assay checkpoint import-hf hf imported"},
      .arguments =
          {{"DIR", "a folder with config.json and *.safetensors", &options->from, true, {}, true},
           {"RUN", "the run folder, as for `assay train --out`", &options->to, true, {}, true}},
      .action = [&session, options] { return import_weights(session, *options); }};
}

}  // namespace assay::cli
