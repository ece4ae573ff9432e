// The weights of a model folder of Hugging Face transformers, as parameters of ours. Whatever in
// its files contradicts config.json or itself is refused: a part of the model would be lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "spec/model.h"
#include "train/checkpoint/tensor.h"

namespace assay::train {

// A parameter is bf16 if all tensors that make it up are. Otherwise it is fp32, which fp16 and bf16
// fit into exactly.
base::Result<std::vector<checkpoint::Tensor>> read_hf_parameters(
    const std::filesystem::path& folder, const spec::ModelSpec& model);

// Transposes a matrix with elements of `size` bytes.
std::vector<std::byte> transposed(std::span<const std::byte> from, std::int64_t rows,
                                  std::int64_t cols, std::size_t size);

}  // namespace assay::train
