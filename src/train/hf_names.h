// The mapping between Assay's parameters and the tensors of Hugging Face transformers: names,
// slices and transposition for the architectures llama, qwen3 (normalised queries and keys), gpt2,
// and mixtures of the first two kinds: mixtral and qwen3_moe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "spec/model.h"
#include "step/program.h"

namespace assay::train {

// A tensor of theirs: rows [first, first + count) of our parameter, transposed if so stored.
struct HfTensor {
  std::string name;
  std::string parameter;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t cols = 0;
  bool vector = false;
  bool transposed = false;

  [[nodiscard]] std::vector<std::int64_t> shape() const;
};

// Fails for models that none of these architectures computes.
base::Result<std::vector<HfTensor>> hf_tensors(const spec::ModelSpec& model);

// Writes and reads config.json. `where` names it in errors.
base::Result<base::Json> hf_config(const spec::ModelSpec& model, const char* dtype);
base::Result<spec::ModelSpec> model_from_hf(const base::Json& config, const std::string& where);

}  // namespace assay::train
