// What a run's result depends on besides its model and its batch: settings and data. Checkpoints
// store both, so that a run that is resumed with others says so (resume.h).
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "spec/job.h"
#include "train/data/batch_reader.h"

namespace assay::train {

// {"train.clip": 1.0, …}: the keys that determine the next step, and what validation compares.
// Without learning rate, warm-up and length, which are the recipe (snapshot.h), and without what
// changes neither weights nor losses, or only new weights.
base::Json settings_of(const spec::JobSpec& job);

// Where the tokens are, how many, and a hash that identifies them wherever they are: that of the
// shards' own hashes. Of files without a header, only the beginning and the end are read.
base::Json data_of(const spec::JobSpec& job, const data::BatchReader& reader);
bool is_same_data(const base::Json& before, const base::Json& now);
// "a.tokens (1,024 tokens)".
std::string data_text(const base::Json& data);

// "train.clip 1.0 -> 0.5", for every key of either whose value differs.
std::vector<std::string> changes_of(const base::Json& before, const base::Json& now);

}  // namespace assay::train
