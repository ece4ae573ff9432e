#include "plan/model/trainer_step.h"

#include <algorithm>

#include "step/totals.h"

namespace assay::plan {
namespace {

spec::Recompute policy_of(RecomputeKind kind) {
  switch (kind) {
    case RecomputeKind::kNone:
      break;
    case RecomputeKind::kCheap:
    case RecomputeKind::kSelective:
      return spec::Recompute::kCheap;
    case RecomputeKind::kFfn:
      return spec::Recompute::kFfn;
    case RecomputeKind::kFull:
      return spec::Recompute::kFull;
  }
  return spec::Recompute::kNone;
}

double& in_phase(ByPhase& times, step::Phase phase) {
  if (phase == step::Phase::kRecompute) return times.again;
  return phase == step::Phase::kForward ? times.forward : times.backward;
}

PassKind kind_of_pass(step::Kind kind) {
  switch (kind) {
    case step::Kind::kRoute:
    case step::Kind::kRouteGrad:
    case step::Kind::kSortRows:
    case step::Kind::kGatherRows:
    case step::Kind::kCombineRows:
      return PassKind::kRouting;
    case step::Kind::kSum:
      return PassKind::kSums;
    default:
      return PassKind::kElements;
  }
}

step::CollectiveKind collective_kind(step::Kind kind) {
  return kind == step::Kind::kAllToAll ? step::CollectiveKind::kAllToAll
                                       : step::CollectiveKind::kAllGather;
}

// The one that is there already, or a new one; `same` compares what is priced.
template <class Item, class Same>
Item& item_of(std::vector<Item>& list, const Item& item, Same same) {
  const auto found = std::find_if(list.begin(), list.end(), same);
  if (found != list.end()) return *found;
  return list.emplace_back(item);
}

void add(const step::CountedOp& op, StepPieces& pieces) {
  if (op.kind == step::Kind::kRead) return;  // by the host, ahead of time
  const auto count = static_cast<double>(op.count);
  in_phase(pieces.operators, op.phase) += count;
  if (op.kind == step::Kind::kAttention || op.kind == step::Kind::kAttentionGrad) {
    in_phase(pieces.attention, op.phase) += count * op.flops;
    return;
  }
  if (op.is_product()) {
    const StepProduct product{.m = static_cast<double>(op.m),
                              .n = static_cast<double>(op.n),
                              .k = static_cast<double>(op.k),
                              .groups = static_cast<double>(op.groups),
                              .groups_share_k = op.groups_share_k,
                              .fp8 = op.type == step::Dtype::kFp8};
    StepProduct& known = item_of(pieces.products, product, [&](const StepProduct& p) {
      return p.m == product.m && p.n == product.n && p.k == product.k &&
             p.groups == product.groups && p.groups_share_k == product.groups_share_k &&
             p.fp8 == product.fp8;
    });
    in_phase(known.times, op.phase) += count;
    return;
  }
  const StepPass pass{.kind = kind_of_pass(op.kind), .bytes = static_cast<double>(op.bytes())};
  StepPass& known = item_of(pieces.passes, pass, [&](const StepPass& p) {
    return p.kind == pass.kind && p.bytes == pass.bytes;
  });
  in_phase(known.times, op.phase) += count;
}

void add(const step::Totals& totals, StepPieces& pieces, ByPhase StepCall::*times,
         std::vector<StepCall>& calls) {
  for (const step::CountedOp& op : totals.ops) add(op, pieces);
  for (const step::CountedExchange& one : totals.exchanges) {
    const StepCall call{.kind = collective_kind(one.kind),
                        .axis = one.axis,
                        .bytes = static_cast<double>(one.bytes())};
    StepCall& known = item_of(calls, call, [&](const StepCall& c) {
      return c.kind == call.kind && c.axis == call.axis && c.bytes == call.bytes;
    });
    in_phase(known.*times, one.phase) += static_cast<double>(one.calls);
  }
}

}  // namespace

std::size_t TrainerSteps::Hash::operator()(const Key& key) const {
  std::size_t hash = 0;
  for (const std::int64_t value : key.values) {
    hash = (hash ^ static_cast<std::size_t>(value)) * 0x9E3779B97F4A7C15U;
  }
  return hash ^ (hash >> 32U);
}

TrainerSteps::Key TrainerSteps::key_of(const Work& work) {
  const auto whole = [](double value) { return static_cast<std::int64_t>(value); };
  const Degrees& d = work.degrees;
  return {{whole(d.tp), whole(d.cp), d.sequence_parallel ? 1 : 0, whole(work.batch.sequence),
           whole(work.batch.micro_batch), static_cast<std::int64_t>(work.recompute),
           work.fp8 ? 1 : 0}};
}

const TrainerStep* TrainerSteps::of(const Work& work) {
  const Degrees& d = work.degrees;
  // Not made yet for experts over ranks; not executed with more tensor-parallel ranks than key
  // heads.
  if (d.ep > 1 || d.tp > static_cast<double>(model_.kv_heads)) return nullptr;
  const Key key = key_of(work);
  if (last_ != nullptr && key == last_key_) return last_;
  auto& known = known_[key];
  if (known == nullptr) known = std::make_unique<const TrainerStep>(make(work));
  last_key_ = key;
  last_ = known.get();
  return last_;
}

const step::UnitSizes& TrainerSteps::units(double tp) {
  const auto ranks = static_cast<std::int64_t>(tp);
  const auto [known, is_new] = units_.try_emplace(ranks);
  if (is_new) known->second = step::unit_sizes(model_, ranks);
  return known->second;
}

TrainerStep TrainerSteps::make(const Work& work) const {
  const Key key = key_of(work);
  const auto [tp, cp, sequence_parallel, sequence, micro_batch, recompute, fp8] = key.values;
  step::Choices choices{
      .numerics = step::numerics_of(fp8 > 0 ? spec::Precision::kFp8 : spec::Precision::kBf16),
      .recompute = policy_of(work.recompute),
      .sequence = sequence,
      .micro_batch = micro_batch};
  choices.layout.tensor.ranks = tp;
  choices.layout.context.ranks = cp;
  choices.layout.sequence_parallel = sequence_parallel > 0 && tp > 1;
  const step::MicroTotals totals = step::micro_totals(model_, choices);
  TrainerStep step;
  add(totals.dense, step.dense, &StepCall::dense, step.calls);
  add(totals.mixture, step.mixture, &StepCall::mixture, step.calls);
  add(totals.first, step.ends, &StepCall::ends, step.calls);
  add(totals.last, step.ends, &StepCall::ends, step.calls);
  const std::int64_t rows =
      sequence / cp * micro_batch / (choices.layout.sequence_parallel ? tp : 1);
  step.stream =
      static_cast<double>(rows * model_.dim * step::bytes_of(choices.numerics.activations));
  return step;
}

}  // namespace assay::plan
