// The model described by a config.json of Hugging Face transformers: Llama 2 to 3.2, Mistral, Qwen
// 2.5 and 3, GPT-2, Mixtral, Qwen 3 MoE. Every key must be supported, or known not to affect logits
// and gradients; the first other key is an error that names it.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "spec/model.h"

namespace assay::train {

// `where` names the file in errors.
base::Result<spec::ModelSpec> model_from_hf(const base::Json& config, const std::string& where);

}  // namespace assay::train
