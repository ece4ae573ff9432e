#include "plan/model/trainer_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "step/totals.h"

namespace assay::plan {
namespace {

constexpr double kLoadDigits = 1e6;  // rounding of loads in the key

PassKind kind_of_pass(step::OpKind kind) {
  switch (kind) {
    case step::OpKind::kRoute:
    case step::OpKind::kRouteGrad:
    case step::OpKind::kSortRows:
    case step::OpKind::kGatherRows:
    case step::OpKind::kCombineRows:
    case step::OpKind::kArrangeRows:
    case step::OpKind::kPermuteRows:
      return PassKind::kRouting;
    case step::OpKind::kSum:
      return PassKind::kSums;
    default:
      return PassKind::kElements;
  }
}

step::CollectiveKind collective_kind(step::OpKind kind) {
  return kind == step::OpKind::kAllToAll ? step::CollectiveKind::kAllToAll
                                         : step::CollectiveKind::kAllGather;
}

// The one that is there already, or a new one; `same` compares what is priced.
template <class Item, class Same>
Item& item_of(std::vector<Item>& list, const Item& item, Same same) {
  const auto found = std::find_if(list.begin(), list.end(), same);
  if (found != list.end()) return *found;
  return list.emplace_back(item);
}

void add(const step::CountedOp& op, double count, StepPieces& pieces) {
  if (op.kind == step::OpKind::kRead) return;  // by the host, ahead of time
  pieces.operators.of(op.phase) += count;
  if (op.kind == step::OpKind::kAttention || op.kind == step::OpKind::kAttentionGrad) {
    pieces.attention.of(op.phase) += count * op.flops;
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
    known.times.of(op.phase) += count;
    return;
  }
  const StepPass pass{.kind = kind_of_pass(op.kind), .bytes = static_cast<double>(op.bytes())};
  StepPass& known = item_of(pieces.passes, pass, [&](const StepPass& p) {
    return p.kind == pass.kind && p.bytes == pass.bytes;
  });
  known.times.of(op.phase) += count;
}

void add(const step::Totals& totals, StepPieces& pieces, ByPhase StepCall::*times,
         std::vector<StepCall>& calls) {
  for (const step::CountedOp& op : totals.ops) add(op, static_cast<double>(op.count), pieces);
  for (const step::CountedExchange& one : totals.exchanges) {
    if (one.axis == step::Axis::kExpert) continue;  // priced with what hides it: add_experts
    const StepCall call{.kind = collective_kind(one.kind),
                        .axis = one.axis,
                        .bytes = static_cast<double>(one.bytes())};
    StepCall& known = item_of(calls, call, [&](const StepCall& c) {
      return c.kind == call.kind && c.axis == call.axis && c.bytes == call.bytes;
    });
    (known.*times).of(one.phase) += static_cast<double>(one.calls);
  }
}

// What a mixture's layer exchanges among ranks with different experts, when, and what it computes
// from the first of these to the last.
void add_experts(const step::Totals& mixture, TrainerStep& step) {
  using What = step::ScheduleEvent::What;
  std::map<std::int32_t, step::Phase> tickets;
  const auto is_of_experts = [&](const step::ScheduleEvent& at) {
    if (at.what == What::kWait) return tickets.contains(at.ticket);
    return at.what == What::kIssue && mixture.exchanges[at.index].axis == step::Axis::kExpert;
  };
  StepPieces computed;
  bool is_empty = true;
  for (const step::ScheduleEvent& at : mixture.order) {
    if (at.what == What::kOp) {
      // Each moment is one of the op's executions.
      add(mixture.ops[at.index], 1, computed);
      is_empty = false;
      continue;
    }
    if (!is_of_experts(at)) continue;
    if (!is_empty && !step.exchange.empty()) {
      step.exchange.push_back({.compute = std::move(computed)});
    }
    computed = {};
    is_empty = true;
    ExpertMoment moment{.ticket = at.ticket};
    if (at.what == What::kWait) {
      moment.what = ExpertMoment::What::kWait;
      moment.phase = tickets.at(at.ticket);
    } else {
      const step::CountedExchange& one = mixture.exchanges[at.index];
      const ExpertMessage message{.bytes = static_cast<double>(one.bytes()),
                                  .rows = one.kind == step::OpKind::kExchangeRows};
      const auto known = std::find(step.messages.begin(), step.messages.end(), message);
      moment.what = ExpertMoment::What::kIssue;
      moment.message = static_cast<std::size_t>(known - step.messages.begin());
      moment.phase = one.phase;
      if (known == step.messages.end()) step.messages.push_back(message);
      tickets[at.ticket] = one.phase;
    }
    step.exchange.push_back(std::move(moment));
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
           work.fp8 ? 1 : 0, whole(d.ep), std::llround(kLoadDigits * d.expert_load)}};
}

const TrainerStep* TrainerSteps::of(const Work& work) {
  const Degrees& d = work.degrees;
  if (d.tp > static_cast<double>(model_.kv_heads)) return nullptr;
  const Key key = key_of(work);
  if (last_ != nullptr && key == last_key_) return last_;
  auto& known = known_[key];
  if (known == nullptr) known = std::make_unique<const TrainerStep>(make(work));
  last_key_ = key;
  last_ = known.get();
  return last_;
}

const step::UnitSizes& TrainerSteps::units(double tp, double ep) {
  const std::pair ranks(static_cast<std::int64_t>(tp), static_cast<std::int64_t>(ep));
  const auto [known, is_new] = units_.try_emplace(ranks);
  if (is_new) known->second = step::unit_sizes(model_, ranks.first, ranks.second);
  return known->second;
}

TrainerStep TrainerSteps::make(const Work& work) const {
  const Key key = key_of(work);
  const auto [tp, cp, sequence_parallel, sequence, micro_batch, recompute, fp8, ep, load] =
      key.values;
  step::Choices choices{
      .numerics = step::numerics_of(fp8 > 0 ? spec::Precision::kFp8 : spec::Precision::kBf16),
      .recompute = recompute_key(work.recompute),
      .sequence = sequence,
      .micro_batch = micro_batch};
  choices.layout.tensor.ranks = tp;
  choices.layout.context.ranks = cp;
  choices.layout.expert.ranks = ep;
  choices.layout.sequence_parallel = sequence_parallel > 0 && tp > 1;
  choices.expert_load = static_cast<double>(load) / kLoadDigits;
  const step::MicroTotals totals = step::micro_totals(model_, choices);
  TrainerStep step;
  add(totals.dense, step.dense, &StepCall::dense, step.calls);
  add(totals.mixture, step.mixture, &StepCall::mixture, step.calls);
  if (ep > 1) add_experts(totals.mixture, step);
  add(totals.first, step.ends, &StepCall::ends, step.calls);
  add(totals.last, step.ends, &StepCall::ends, step.calls);
  const std::int64_t rows =
      sequence / cp * micro_batch / (choices.layout.sequence_parallel ? tp : 1);
  step.stream =
      static_cast<double>(rows * model_.dim * step::bytes_of(choices.numerics.activations));
  return step;
}

}  // namespace assay::plan
