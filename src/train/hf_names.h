// How our parameters are called, cut and turned in the files of the Hugging Face library: the
// architectures llama, qwen3 (queries and keys normalised) and gpt2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "spec/model.h"
#include "step/program.h"

namespace assay::train {

// Rows [first, first + count) of our parameter are the tensor, transposed if it is so there.
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

// Refused: models that no architecture there computes.
base::Result<std::vector<HfTensor>> hf_tensors(const spec::ModelSpec& model);

// config.json, and the model it describes. `where` names it in errors.
base::Result<base::Json> hf_config(const spec::ModelSpec& model, const char* dtype);
base::Result<spec::ModelSpec> model_from_hf(const base::Json& config, const std::string& where);

}  // namespace assay::train
