// TrainerStep: what a micro-batch of our trainer computes and exchanges in one layer of each kind,
// and before and after the layers: the step's own totals (step/totals.h), sorted by what they are
// priced by. trainer_time.h prices it.
//
// Nothing here describes a layer again: what block.cc and mixture.cc emit for the program that is
// executed is what is priced.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plan/model/work.h"
#include "spec/model.h"
#include "step/collective.h"
#include "step/layout.h"
#include "step/op.h"
#include "step/units.h"

namespace assay::plan {

struct DeviceTimes;

// A count or amount per phase of a micro-batch.
struct ByPhase {
  double forward = 0;
  double recomputed = 0;
  double backward = 0;

  [[nodiscard]] double& of(step::Phase phase) {
    if (phase == step::Phase::kRecompute) return recomputed;
    return phase == step::Phase::kForward ? forward : backward;
  }
};

struct StepProduct {
  double m = 0;
  double n = 0;
  double k = 0;
  double groups = 1;  // experts that share m, or k
  bool groups_share_k = false;
  bool fp8 = false;
  ByPhase times;
};

enum class PassKind : std::uint8_t {
  kElements,  // norms, activations, casts, loss
  kRouting,   // of mixtures: choosing experts, and rows in their order
  kSums,      // of what tensor-parallel ranks have exchanged
};

struct StepPass {
  PassKind kind = PassKind::kElements;
  double bytes = 0;  // read and written
  ByPhase times;
};

struct StepPieces {
  std::vector<StepProduct> products;
  std::vector<StepPass> passes;
  ByPhase attention;  // flops of its core
  ByPhase operators;  // kernels
};

// Layers and ends exchange messages of the same sizes, each of which is priced once.
struct StepCall {
  step::CollectiveKind kind = step::CollectiveKind::kAllGather;
  step::Axis axis = step::Axis::kTensor;
  double bytes = 0;  // of the whole
  ByPhase dense;
  ByPhase mixture;
  ByPhase ends;
};

// Rows of a mixture on their way between ranks that have different experts, and what is computed
// meanwhile, in the order of the program.
struct ExpertMoment {
  enum class What : std::uint8_t { kCompute, kIssue, kWait };
  What what = What::kCompute;
  StepPieces compute;       // kCompute
  std::size_t message = 0;  // kIssue: which of TrainerStep::messages
  std::int32_t ticket = 0;  // kIssue, kWait
  step::Phase phase = step::Phase::kForward;
};

// A message among ranks with different experts, as it is with an even load.
struct ExpertMessage {
  double bytes = 0;  // of the whole, of this rank's tokens
  bool rows = true;  // as many as tokens chose experts; else as many whatever they chose
  bool operator==(const ExpertMessage&) const = default;
};

struct TrainerStep {
  StepPieces dense;
  StepPieces mixture;
  StepPieces ends;  // embedding, head and loss: forward and backward, none of it recomputed
  std::vector<StepCall> calls;
  // Of a mixture's layer, where ranks have different experts.
  std::vector<ExpertMessage> messages;
  std::vector<ExpertMoment> exchange;
  double stream = 0;  // bytes that a stage hands on
  // What the device takes for the pieces above at the rates that were asked for last: searches ask
  // for the same again and again (trainer_time.cc).
  mutable std::shared_ptr<const DeviceTimes> priced;
};

// The steps of one model in the layouts that are asked for. Each is made once and kept, because
// searches ask for few of them very often: they depend on tensor, context and expert ranks, the
// micro-batch and recomputation, not on data ranks, stages or the number of micro-batches. Not for
// several threads at once.
class TrainerSteps {
 public:
  explicit TrainerSteps(const spec::ModelSpec& model) : model_(model) {}

  // Null for layouts that the trainer does not execute: more tensor-parallel ranks than heads of
  // keys.
  const TrainerStep* of(const Work& work);
  // Of its parameters, on one of so many ranks of tensor and expert parallelism.
  const step::UnitSizes& units(double tp, double ep);

 private:
  struct Key {
    std::array<std::int64_t, 9> values{};
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  static Key key_of(const Work& work);
  [[nodiscard]] TrainerStep make(const Work& work) const;

  spec::ModelSpec model_;
  std::unordered_map<Key, std::unique_ptr<const TrainerStep>, Hash> known_;
  // By ranks of tensor and expert parallelism.
  std::map<std::pair<std::int64_t, std::int64_t>, step::UnitSizes> units_;
  Key last_key_;
  const TrainerStep* last_ = nullptr;
};

// Of the work's own layout, batch and recomputation; null: priced in closed form.
inline const TrainerStep* trainer_step(const Work& work) {
  return work.trainer == nullptr || work.lora ? nullptr : work.trainer->of(work);
}

}  // namespace assay::plan
