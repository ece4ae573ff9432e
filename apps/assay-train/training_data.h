// The tokens that a job reads: its own, or the built-in text; and those it is validated on.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "spec/job.h"
#include "train/data/token_set.h"

namespace assay::cli {

// The built-in text is written to `out` if it is needed.
base::Result<data::TokenSet> open_training_data(const spec::JobSpec& job,
                                                const std::filesystem::path& out);
// Nothing for a job that is never validated.
base::Result<std::optional<data::TokenSet>> open_validation_data(const spec::JobSpec& job);

}  // namespace assay::cli
