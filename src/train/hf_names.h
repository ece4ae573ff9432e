// The mapping between Assay's parameters and the tensors of Hugging Face transformers: names,
// slices and transposition for the architectures llama (also used for mistral), qwen2 (biases on
// queries, keys and values), qwen3 (normalised queries and keys), gpt2, and the mixtures mixtral
// and qwen3_moe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/model.h"
#include "step/program.h"

namespace assay::train {

// A Hugging Face tensor: rows [first, first + count) of our parameter, possibly stored transposed.
// If our parameter is a concatenation of several of their vectors, its elements count as rows.
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

// The architecture that can express a model. Fails if there is none, as does hf_tensors().
enum class HfKind { kLlama, kQwen2, kQwen3, kGpt2, kMixtral, kQwen3Moe };
base::Result<HfKind> hf_kind(const spec::ModelSpec& model);

base::Result<std::vector<HfTensor>> hf_tensors(const spec::ModelSpec& model);

}  // namespace assay::train
