#include "assay/checkpoint/hf.h"

#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "train/checkpoint/checkpoint.h"
#include "train/hf_files.h"

namespace assay::cli {
namespace {

struct Places {
  std::string from;
  std::string to;
};

base::Result<base::ExitCode> export_weights(const Session& session, const Places& places) {
  ASSAY_TRY(const checkpoint::Checkpoint from, checkpoint::Checkpoint::open(places.from));
  ASSAY_TRY_VOID(train::export_hf(from, places.to));
  session.print_json(base::Json{{"from", places.from}, {"to", places.to}});
  session.print(fmt::format("wrote {}/config.json and model.safetensors\n", places.to));
  return base::ExitCode::kYes;
}

base::Result<base::ExitCode> import_weights(const Session& session, const Places& places) {
  ASSAY_TRY(const std::filesystem::path made, train::import_hf(places.from, places.to));
  session.print_json(base::Json{{"from", places.from}, {"checkpoint", made.string()}});
  session.print(fmt::format("wrote {}\n", made.string()));
  session.next(fmt::format("assay train RUN --out {} --resume", places.to));
  return base::ExitCode::kYes;
}

}  // namespace

Verb export_hf_verb(const Session& session) {
  const auto places = std::make_shared<Places>();
  return {.name = "export-hf",
          .description = "write a checkpoint's weights as the Hugging Face library reads them",
          .examples = {"assay checkpoint export-hf demo-run/checkpoints/step-2 hf"},
          .arguments = {{"CHECKPOINT", "a checkpoint's folder", &places->from, true, {}, true},
                        {"DIR", "the folder to make", &places->to, true, {}, true}},
          .action = [&session, places] { return export_weights(session, *places); }};
}

Verb import_hf_verb(const Session& session) {
  const auto places = std::make_shared<Places>();
  return {
      .name = "import-hf",
      .description = "begin a run with weights that the Hugging Face library wrote",
      .examples = {"assay checkpoint import-hf hf imported"},
      .arguments =
          {{"DIR", "a folder with config.json and *.safetensors", &places->from, true, {}, true},
           {"RUN", "the run's folder, as for `assay train --out`", &places->to, true, {}, true}},
      .action = [&session, places] { return import_weights(session, *places); }};
}

}  // namespace assay::cli
