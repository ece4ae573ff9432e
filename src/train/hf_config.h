// Writes the config.json of Hugging Face transformers, for the architectures that hf_names.h lists.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "spec/model.h"

namespace assay::train {

base::Result<base::Json> hf_config(const spec::ModelSpec& model, const char* dtype);

}  // namespace assay::train
