// Validation: the mean loss over windows that are always the same, with the weights as they stand.
// The training program's own forward ops compute it, in the memory of activations, which the next
// step overwrites: no second arena, and weights, moments and gradients are not touched.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "train/backend.h"
#include "train/data/batch_reader.h"

namespace assay::train {

class Validation {
 public:
  // About `tokens` of them, whole windows, at most all that the set has. Set and program must
  // outlive it.
  Validation(const data::TokenSet& set, const step::Program& program, std::int64_t tokens);

  [[nodiscard]] std::int64_t tokens() const;
  // Nothing when `stop` was set before it was done.
  base::Result<std::optional<double>> loss(Backend& backend,
                                           const std::atomic<bool>* stop = nullptr) const;

 private:
  // Windows from `first` on, as many as a micro-batch has rows; rows without one do not count.
  base::Result<void> fill(std::uint64_t first, data::Batch& batch) const;

  const step::Program* program_;
  data::BatchReader reader_;
  std::uint64_t windows_;
  std::vector<const step::Op*> forward_;
};

}  // namespace assay::train
