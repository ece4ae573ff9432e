// Validation: the mean loss of the current weights over a fixed set of windows. It executes the
// training program's own forward ops in the memory for activations, which the next step overwrites:
// no second arena is needed, and weights, moments and gradients are not touched.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "train/backend.h"
#include "train/data/batch_reader.h"

namespace assay::train {

class Validation {
 public:
  // Uses `tokens` tokens, rounded up to whole windows, at most the whole set. Set and program must
  // outlive this object.
  Validation(const data::TokenSet& set, const step::Program& program, std::int64_t tokens);

  [[nodiscard]] std::int64_t tokens() const;
  // Called by every rank of `ranks`; all read the same windows. Nothing if `stop` was set before
  // the end.
  base::Result<std::optional<double>> loss(Backend& backend,
                                           const std::atomic<bool>* stop = nullptr,
                                           comm::Communicator* ranks = nullptr) const;

 private:
  // Fills a micro-batch with windows from `first` on; targets of unused rows are ignored.
  base::Result<void> fill(std::uint64_t first, data::Batch& batch) const;

  const step::Program* program_;
  data::BatchReader reader_;
  std::uint64_t windows_;
  std::vector<const step::Op*> forward_;
};

}  // namespace assay::train
