// The verbs of `assay-train`: train.cc, generate.cc and score.cc.
#pragma once

#include "assay-train/options.h"

namespace assay::cli {

base::Result<base::ExitCode> train_model(const Session& session, const TrainOptions& options);
base::Result<base::ExitCode> generate_text(const Session& session, const GenerateOptions& options);
base::Result<base::ExitCode> score_text(const Session& session, const ScoreOptions& options);

}  // namespace assay::cli
