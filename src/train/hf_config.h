// config.json of Hugging Face transformers, of the architectures that hf_names.h lists. What a
// config says that would change the results, and that no model here computes, is refused by its
// key.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "spec/model.h"

namespace assay::train {

base::Result<base::Json> hf_config(const spec::ModelSpec& model, const char* dtype);

// `where` names the file in errors.
base::Result<spec::ModelSpec> model_from_hf(const base::Json& config, const std::string& where);

}  // namespace assay::train
