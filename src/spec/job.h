// JobSpec: everything that defines a training run: model, batch, training, layout, cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_type.h"
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
// Of matrix products. The last two have a scale for each block of 32 or 16 elements.
enum class Precision { kFp32, kBf16, kFp16, kFp8, kMxfp8, kNvfp4 };
constexpr bool has_fewer_bits(Precision precision) {
  return precision == Precision::kFp8 || precision == Precision::kMxfp8 ||
         precision == Precision::kNvfp4;
}
constexpr bool has_block_scales(Precision precision) {
  return precision == Precision::kMxfp8 || precision == Precision::kNvfp4;
}
enum class Recompute { kNone, kCheap, kFfn, kFull, kAuto };
enum class Schedule { kCosine, kLinear, kWsd, kConstant };
enum class NonFinite { kSkip, kStop };
enum class Packing { kStream, kDocuments };
enum class Mask { kNone, kDocument };

struct TrainSpec {
  // How long: at most one of these three.
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> tokens;
  std::optional<double> tokens_per_matmul_parameter;

  Optimizer optimizer = Optimizer::kAdamw;
  Precision precision = Precision::kBf16;  // default on a CPU: kFp32
  Recompute recompute = Recompute::kAuto;

  std::int64_t seed = 1;
  double init_std = 0.02;                    // standard deviations of initial weights
  std::optional<double> embedding_init_std;  // none: init_std
  std::optional<double> head_init_std;       // likewise
  double learning_rate = 3e-4;
  Schedule schedule = Schedule::kCosine;
  std::int64_t warmup_steps = 0;
  double final_fraction = 0.1;  // of the learning rate, reached at the end
  double decay_fraction = 0.2;  // of the steps, for the final decay of kWsd
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double clip = 1.0;  // 0: no clipping
  double z_loss = 0;
  double balance_loss = 0.01;
  double router_z_loss = 0.001;
  double balance_rate = 0.001;
  double muon_learning_rate = 0.02;
  double muon_momentum = 0.95;
  NonFinite non_finite = NonFinite::kSkip;
  std::int64_t max_skipped = 20;  // steps in a row
  bool deterministic = false;
  std::int64_t validate_every = 0;  // steps; 0: never
  std::int64_t validate_tokens = 131'072;

  // Not keys: whether these were chosen by rules.cc rather than set by the job.
  bool learning_rate_is_usual = false;
  bool warmup_is_usual = false;
};

struct DataSpec {
  std::optional<std::string> train;       // a shard or a folder of shards; none: the built-in text
  std::optional<std::string> mix;         // instead of `train`: several of them with weights
  std::optional<std::string> validation;  // like train; none: no validation
  std::optional<base::TokenType> type;    // for files without a header
  Packing pack = Packing::kStream;
  Mask mask = Mask::kNone;
};

struct CheckpointSpec {
  std::optional<std::int64_t> every;  // steps; none: only the last
  std::int64_t keep = 2;
};

struct JobSpec {
  ModelSpec model;
  BatchSpec batch;
  TrainSpec train;
  DataSpec data;
  CheckpointSpec checkpoint;
  LayoutSpec layout;
  ClusterSpec cluster;
  std::vector<PriceSpec> prices;  // the job's own, in addition to the presets

  [[nodiscard]] std::int64_t tokens_per_step() const {
    return batch.sequence * batch.micro_batch * batch.accumulate * layout.data_ranks();
  }
};

// The length of training in whole optimizer steps, and in the tokens that these read; nothing if
// the job does not say. The job must have passed rules.cc, which keeps both within 64 bits.
std::optional<std::int64_t> training_steps(const JobSpec& job);
std::optional<std::int64_t> training_tokens(const JobSpec& job);

// A part of DataSpec::mix, "web=0.7, code=0.3": a shard or folder and its weight.
struct MixPart {
  std::string path;
  double weight = 1;  // share of the tokens read, relative to the others
};

// Errors say what is wrong, not where. Paths may contain '=', but not ','.
base::Result<std::vector<MixPart>> parse_mix(std::string_view text);

}  // namespace assay::spec
