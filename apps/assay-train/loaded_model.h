// A model of a checkpoint, ready to be executed: what `generate` and `score` begin with.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "assay-train/device.h"
#include "base/result.h"
#include "spec/model.h"
#include "step/memory_plan.h"
#include "step/program.h"
#include "train/checkpoint/checkpoint.h"
#include "train/data/tokenizer.h"
#include "train/tokenizer_record.h"

namespace assay::cli {

// A checkpoint by what people name: itself, or a run, of which it is the newest that is intact.
struct OpenedModel {
  checkpoint::Checkpoint checkpoint;
  spec::ModelSpec model;
  train::TokenizerRecord record;  // what the checkpoint says of its tokenizer
  std::unique_ptr<const data::Tokenizer> tokenizer;
};
// `tokenizer` is one to use where the checkpoint has none, or empty; one that differs from the
// checkpoint's is refused. Errors name the option of `verb`.
base::Result<OpenedModel> open_model(const std::filesystem::path& path,
                                     const std::string& tokenizer, const std::string& verb);

// On a device, with its weights. The program and the plan must not move.
struct LoadedModel {
  Device device;
  step::Program program;
  step::MemoryPlan plan;
};
base::Result<std::unique_ptr<LoadedModel>> load_model(const OpenedModel& opened,
                                                      step::Choices choices);

}  // namespace assay::cli
