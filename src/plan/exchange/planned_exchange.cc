#include "plan/exchange/planned_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "plan/exchange/activations.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;
using step::CountedExchange;
using step::Exchanged;

CollectiveKind collective_of(step::OpKind kind) {
  switch (kind) {
    case step::OpKind::kAllToAll:
    case step::OpKind::kExchangeRows:
      return CollectiveKind::kAllToAll;
    case step::OpKind::kSend:
      return CollectiveKind::kSend;
    case step::OpKind::kReceive:
      return CollectiveKind::kReceive;
    default:
      return CollectiveKind::kAllGather;
  }
}

std::int64_t& volume_of(Volume& volume, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllToAll:
      return volume.all_to_all;
    case CollectiveKind::kSend:
      return volume.send;
    default:
      return volume.all_gather;
  }
}

void add_call(const CountedExchange& one, std::vector<PlannedCalls>& list) {
  const CollectiveKind kind = collective_of(one.kind);
  const std::string about(to_text(one.what));
  const std::string among(to_text(one.axis));
  auto row = std::find_if(list.begin(), list.end(), [&](const PlannedCalls& known) {
    return known.about == about && known.among == among && known.calls.kind == kind &&
           known.calls.type == one.type;
  });
  if (row == list.end()) {
    row = list.insert(row, {.about = about,
                            .among = among,
                            .ranks = one.ranks,
                            .calls = {.kind = kind, .type = one.type, .least_bytes = one.bytes()}});
  }
  row->calls.calls += one.calls;
  row->calls.bytes += one.calls * one.bytes();
  row->calls.least_bytes = std::min(row->calls.least_bytes, one.bytes());
  row->calls.most_bytes = std::max(row->calls.most_bytes, one.bytes());
}

bool is_about_parameters(const CountedExchange& one) {
  return one.what == Exchanged::kWeights || one.what == Exchanged::kGradients;
}

std::vector<GroupTraffic> groups_of(const step::Footprint& footprint) {
  std::vector<GroupTraffic> groups;
  for (const step::UnitKind& kind : footprint.units) {
    GroupTraffic group{
        .group = kind.name,
        .parameters = {kind.parts.begin(), kind.parts.end()},
        .optimizer = kind.whole_matrices ? spec::Optimizer::kMuon : spec::Optimizer::kAdamw,
        .type = footprint.choices.numerics.weights,
        .gradient_type = footprint.choices.numerics.weights,
        .tensors = kind.count,
        .padded = kind.count,
        .elements_each = kind.elements_each,
        .elements = kind.elements};
    for (const CountedExchange& one : footprint.exchanges) {
      const bool received = one.kind == step::OpKind::kReceive;
      if (!is_about_parameters(one) || kind.name != one.units || received) continue;
      volume_of(group.volume, collective_of(one.kind)) += one.calls * one.elements;
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

std::string scheme_of(const step::Layout& layout) {
  std::string text;
  if (layout.shards().ranks > 1) {
    text = fmt::format("ZeRO {} over {} ranks", layout.zero, layout.shards().ranks);
  }
  if (layout.spreads_experts()) {
    text += fmt::format(", experts over {} and each of them over {}", layout.expert.ranks,
                        layout.shard.ranks);
  }
  if (layout.replica.ranks > 1) {
    text += fmt::format("{}{} replicas", text.empty() ? "" : ", ", layout.replica.ranks);
  }
  if (layout.context.ranks > 1) {
    text += fmt::format("{}{} ranks that share sequences", text.empty() ? "" : ", ",
                        layout.context.ranks);
  }
  if (text.empty()) return "one rank adds up each gradient and keeps each parameter";
  return text +
         "; gradients after every micro-batch by all-to-all, added by the ranks that keep them";
}

}  // namespace

Volume PlannedExchange::bytes() const {
  Volume sum;
  for (const GroupTraffic& group : groups) sum += group.bytes();
  return sum;
}

Volume PlannedExchange::two_byte_bytes() const {
  Volume sum;
  for (const GroupTraffic& group : groups) sum += group.two_byte_bytes();
  return sum;
}

PlannedExchange exchange_of(const step::Footprint& footprint) {
  const step::Layout& layout = footprint.choices.layout;
  PlannedExchange result{.counted = true,
                         .scheme = scheme_of(layout),
                         .rank = layout.rank(),
                         .stage = layout.pipeline.rank,
                         .groups = groups_of(footprint)};
  std::vector<CountedExchange> sorted = footprint.exchanges;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const CountedExchange& a, const CountedExchange& b) {
                     return std::tuple(a.what, a.axis, a.kind) < std::tuple(b.what, b.axis, b.kind);
                   });
  for (const CountedExchange& one : sorted) {
    add_call(one, result.calls);
    if (!is_about_parameters(one)) continue;
    result.sent_bytes +=
        static_cast<double>(one.calls) *
        step::sent_bytes({collective_of(one.kind), one.type, one.elements, one.ranks});
  }
  return result;
}

base::Result<PlannedExchange> exchange_in_closed_form(const spec::JobSpec& job,
                                                      spec::Recompute recompute,
                                                      const ExchangeHabits& habits) {
  ASSAY_TRY(Communication made, communication_of(job, habits));
  PlannedExchange result{
      .scheme = std::move(made.scheme),
      .rank = made.stage * (job.layout.dp * job.layout.inner_ranks() / job.layout.pp),
      .stage = made.stage,
      .groups = std::move(made.groups),
      .sent_bytes = made.sent_bytes()};
  for (const CallSummary& calls : made.calls()) {
    result.calls.push_back({.about = "parameters", .calls = calls});
  }
  for (const ActivationCalls& one : activation_calls(job, result.stage, recompute)) {
    const std::string axis(step::to_text(one.axis));
    result.calls.push_back({.about = axis, .among = axis, .calls = one.calls});
  }
  return result;
}

}  // namespace assay::plan
