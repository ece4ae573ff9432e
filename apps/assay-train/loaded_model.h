// A checkpoint's model, ready to be executed: the common beginning of `generate` and `score`.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "assay-train/device.h"
#include "base/json.h"
#include "base/result.h"
#include "spec/model.h"
#include "step/memory_plan.h"
#include "step/program.h"
#include "train/checkpoint/checkpoint.h"
#include "train/data/tokenizer.h"
#include "train/tokenizer_record.h"

namespace assay::cli {

// A checkpoint named by itself, or by its run: then the newest intact one. Loading the model finds
// out whether it is.
struct OpenedModel {
  std::filesystem::path named;  // what the user named
  checkpoint::Checkpoint checkpoint;
  spec::ModelSpec model;
  train::TokenizerRecord record;  // the checkpoint's information on its tokenizer
  std::unique_ptr<const data::Tokenizer> tokenizer;
  std::vector<base::Error> damaged;  // what is wrong with newer ones of the run
};
// `tokenizer` is used if the checkpoint has none; may be empty. One that differs from the
// checkpoint's is refused. Errors name the option of `verb`.
base::Result<OpenedModel> open_model(const std::filesystem::path& path,
                                     const std::string& tokenizer, const std::string& verb);

// The model on a device, with its weights. Program and plan must not move, because the backend
// refers to them.
struct LoadedModel {
  TrainingDevice device;
  step::Program program;
  step::MemoryPlan plan;
};
// Reads the weights while they are verified. If the newest checkpoint of a run turns out to be
// damaged, the one before it is read and becomes `opened.checkpoint`, and a line on standard error
// names both.
base::Result<std::unique_ptr<LoadedModel>> load_model(OpenedModel& opened, step::Choices choices);

// What is wrong with the checkpoints that were passed over, for --json.
base::Json damaged_json(const OpenedModel& opened);

}  // namespace assay::cli
