// What the verbs of `assay-train` do.
#pragma once

#include "assay-train/words.h"

namespace assay::cli {

base::Result<base::ExitCode> train_model(const Session& session, const TrainWords& words);
base::Result<base::ExitCode> generate_text(const Session& session, const GenerateWords& words);

}  // namespace assay::cli
