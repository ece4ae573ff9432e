// The verbs of `assay-train`: train.cc, generate.cc, score.cc and tune.cc.
#pragma once

#include "assay-train/options.h"

namespace assay::cli {

base::Result<base::ExitCode> train_model(const Session& session, const TrainOptions& options);
base::Result<base::ExitCode> generate_text(const Session& session, const GenerateOptions& options);
base::Result<base::ExitCode> score_text(const Session& session, const ScoreOptions& options);
base::Result<base::ExitCode> tune_products(const Session& session, const TuneOptions& options);

}  // namespace assay::cli
