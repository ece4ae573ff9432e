// JobSpec: everything one training run is: model, batch, training, layout, cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "spec/cluster.h"
#include "spec/layout.h"
#include "spec/model.h"
#include "spec/price.h"

namespace assay::spec {

struct BatchSpec {
  std::int64_t sequence = 0;     // tokens; default: the model's context
  std::int64_t micro_batch = 1;  // sequences per data rank and forward pass
  std::int64_t accumulate = 1;   // forward passes per optimizer step
};

enum class Optimizer { kAdamw, kMuon };
enum class Precision { kFp32, kBf16, kFp16, kFp8 };
enum class Recompute { kNone, kCheap, kFfn, kFull, kAuto };

struct TrainSpec {
  // How long: at most one of these three.
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> tokens;
  std::optional<double> tokens_per_matmul_parameter;

  Optimizer optimizer = Optimizer::kAdamw;
  Precision precision = Precision::kBf16;  // default on a CPU: kFp32
  Recompute recompute = Recompute::kAuto;
};

struct JobSpec {
  ModelSpec model;
  BatchSpec batch;
  TrainSpec train;
  LayoutSpec layout;
  ClusterSpec cluster;
  std::vector<PriceSpec> prices;  // the job's own, beside the presets'

  [[nodiscard]] std::int64_t tokens_per_step() const {
    return batch.sequence * batch.micro_batch * batch.accumulate * layout.data_ranks();
  }
};

// The length of training in whole optimizer steps, and the tokens that these read; nothing when the
// job does not say. For a job that went through rules.cc, which keeps both within 64 bits.
std::optional<std::int64_t> training_steps(const JobSpec& job);
std::optional<std::int64_t> training_tokens(const JobSpec& job);

}  // namespace assay::spec
