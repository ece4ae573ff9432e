#include "plan/rank_footprints.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "base/error.h"
#include "plan/exchange/communication.h"
#include "plan/model/trainer_memory.h"
#include "step/layout.h"
#include "step/pipeline.h"
#include "step/recompute.h"
#include "step/shapes.h"

namespace assay::plan {
namespace {

using spec::JobSpec;
using spec::Recompute;

// More than any model has. The time to place the buffers of a stage grows with the square of its
// blocks: a second for this many.
constexpr std::int64_t kMostBlocks = 512;
constexpr std::int64_t kMostPasses = 20'000;     // of a block by a micro-batch
constexpr std::int64_t kMostParts = 20'000'000;  // of a unit on a data rank

base::Result<void> check_size(const JobSpec& job) {
  ASSAY_TRY_VOID(communication_of(job));  // bytes about parameters are countable
  const spec::LayoutSpec& l = job.layout;
  const spec::ModelSpec& m = job.model;
  const auto widest = static_cast<long double>(m.vocab + 4 * (m.dim + m.ffn + m.q_dim()));
  const bool large = widest * static_cast<long double>(job.tokens_per_step()) *
                         static_cast<long double>(m.layers) >
                     1e17L;
  const std::int64_t micros =
      l.pp > 1 ? job.batch.accumulate : std::min(step::kUnrolledMicros, job.batch.accumulate);
  const std::int64_t blocks = m.layers / l.pp;
  const bool long_list =
      blocks > kMostBlocks || blocks > kMostPasses / std::max<std::int64_t>(1, micros);
  if (!large && !long_list && l.dp * l.fsdp * l.cp * l.ep <= kMostParts / m.layers) return {};
  return base::fail(base::usage_error(blocks > kMostBlocks ? "model.layers"
                                      : large || long_list ? "batch"
                                                           : "layout",
                                      "the step's list would be too long to count",
                                      "make the model, the batch or the layout smaller"));
}

// As the trainer runs it: CPUs compute in fp32, and GPUs do not.
spec::Precision executed_precision(spec::Precision asked, bool cpu) {
  if (cpu) return spec::Precision::kFp32;
  return asked == spec::Precision::kFp32 ? spec::Precision::kBf16 : asked;
}

base::Result<step::Choices> choices_of_rank(const JobSpec& job, const RankDevice& device,
                                            std::int64_t rank) {
  step::Choices choices = step::choices_of(job);
  choices.numerics = step::numerics_of(executed_precision(job.train.precision, device.cpu));
  ASSAY_TRY(choices.layout, step::layout_of(job.layout, rank));
  return choices;
}

// Amounts that differ between data ranks, by rank.
struct Shares {
  std::vector<std::int64_t> matrices;   // Muon's, which are whole
  std::vector<std::int64_t> of_a_unit;  // the same, of the unit of which it has most
  std::vector<std::int64_t> partial;    // that tensor-parallel ranks add up together
};

Shares shares_of(const JobSpec& job, const step::Layout& layout) {
  const auto ranks = static_cast<std::size_t>(layout.data().ranks);
  Shares shares{std::vector<std::int64_t>(ranks), std::vector<std::int64_t>(ranks),
                std::vector<std::int64_t>(ranks)};
  auto parameters = step::list_parameters(job.model, job.train.optimizer, layout);
  const std::vector<step::Unit> units = step::make_units(job.model, layout, parameters);
  for (const step::Unit& unit : units) {
    if (unit.stage != layout.pipeline.rank || !unit.whole_matrices) continue;
    for (std::size_t i = 0; i < ranks; ++i) {
      shares.matrices[i] += unit.parts[i].count;
      shares.of_a_unit[i] = std::max(shares.of_a_unit[i], unit.parts[i].count);
    }
  }
  const std::int64_t block = step::norm_block(job.model);
  for (const step::Parameter& p : parameters) {
    const step::Unit& unit = units[static_cast<std::size_t>(p.unit)];
    if (unit.stage != layout.pipeline.rank || !p.partial_gradient) continue;
    const step::Range room{p.offset, (p.elements() + block - 1) / block * block};
    for (std::size_t i = 0; i < ranks; ++i) shares.partial[i] += unit.parts[i].common(room).count;
  }
  return shares;
}

// Of a stage: one, or where they are not alike, those with most. Ranks that share sequences have
// pieces of them that see different numbers of keys.
std::vector<std::int64_t> ranks_of_stage(const JobSpec& job, std::int64_t first) {
  constexpr std::size_t kFew = 8;
  const auto layout = step::layout_of(job.layout, first);
  if (!layout) return {first};
  const bool muon = job.train.optimizer == spec::Optimizer::kMuon;
  std::vector<std::int64_t> data = layout->members(step::Axis::kData);
  if (muon && data.size() <= kFew) return data;
  const std::vector<std::int64_t> context = layout->members(step::Axis::kContext);
  std::set<std::int64_t> chosen = {first, context.back()};
  if (context.size() <= kFew) chosen.insert(context.begin(), context.end());
  if (muon || layout->tensor.ranks > 1) {
    const Shares shares = shares_of(job, *layout);
    for (const auto* share : {&shares.matrices, &shares.of_a_unit, &shares.partial}) {
      const auto most = std::max_element(share->begin(), share->end()) - share->begin();
      chosen.insert(data[static_cast<std::size_t>(most)]);
    }
  }
  return {chosen.begin(), chosen.end()};
}

// What cuDNN needs to add up attention's gradients in one order: fp32 gradients of queries, for
// each block of keys. Read off on an H200: 4.0 GiB for 4 sequences of 4,096 with 32 heads of 128.
std::int64_t attention_workspace(const JobSpec& job) {
  // Where documents are masked: a number for each query and key of a micro-batch
  // (document_bias.cu).
  const std::int64_t mask =
      job.data.mask == spec::Mask::kDocument
          ? job.batch.micro_batch * job.batch.sequence * job.batch.sequence * 2
          : 0;
  if (!job.train.deterministic) return mask;
  constexpr std::int64_t kKeysOfABlock = 256;
  const std::int64_t queries = job.batch.micro_batch * job.batch.sequence / job.layout.cp *
                               job.model.q_dim() / job.layout.tp;
  return mask + queries * 4 * ((job.batch.sequence + kKeysOfABlock - 1) / kKeysOfABlock);
}

}  // namespace

RankDevice device_of(const JobSpec& job) {
  const spec::DeviceSpec& device = job.cluster.device;
  RankDevice found{.cpu = device.kind == spec::DeviceKind::kCpu,
                   .memory = device.memory.value_or(base::Bytes(0))};
  if (found.cpu) {
    const std::int64_t devices = std::max<std::int64_t>(1, job.cluster.devices());
    const std::int64_t ranks = job.layout.dp * job.layout.inner_ranks();
    found.memory = base::Bytes(found.memory.count() / std::max<std::int64_t>(1, ranks / devices));
  } else {
    found.extra =
        base::Bytes(static_cast<std::int64_t>(kTrainerContext) + attention_workspace(job));
  }
  return found;
}

std::vector<std::int64_t> distinct_ranks(const JobSpec& job) {
  const spec::LayoutSpec& l = job.layout;
  const std::int64_t per_stage = l.dp * l.inner_ranks() / l.pp;
  std::set<std::int64_t> stages = {0, l.pp - 1};
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> middle;  // by layers: first, last
  for (std::int64_t stage = 1; stage < l.pp - 1; ++stage) {
    const std::int64_t layers = step::layers_of_stage(job.model.layers, stage, l.pp, l.pp_chunks);
    middle.try_emplace(layers, stage, stage).first->second.second = stage;
  }
  for (const auto& [layers, ends] : middle) stages.insert({ends.first, ends.second});
  std::vector<std::int64_t> ranks;
  for (const std::int64_t stage : stages) {
    for (const std::int64_t rank : ranks_of_stage(job, stage * per_stage)) ranks.push_back(rank);
  }
  return ranks;
}

const step::Footprint& RankFootprints::largest() const {
  return *std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.memory.bytes < b.memory.bytes;
  });
}

const step::Footprint& RankFootprints::busiest() const {
  return *std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.exchanged_bytes() < b.exchanged_bytes();
  });
}

base::Result<RankFootprints> rank_footprints(const JobSpec& job, const RankDevice& device) {
  ASSAY_TRY_VOID(check_size(job));
  const std::vector<std::int64_t> ranks = distinct_ranks(job);
  const Recompute requested = job.train.recompute;
  std::span<const Recompute> policies = step::kRecomputePolicies;
  if (requested != Recompute::kAuto) policies = {&requested, 1};
  RankFootprints found;
  base::Result<void> built;
  const auto build = [&](Recompute policy) -> base::Result<void> {
    found = {.recompute = policy, .ranks = {}};
    for (const std::int64_t rank : ranks) {
      ASSAY_TRY(step::Choices choices, choices_of_rank(job, device, rank));
      choices.recompute = policy;
      ASSAY_TRY(step::Footprint footprint, step::footprint_of(job.model, choices));
      found.ranks.push_back(std::move(footprint));
    }
    return {};
  };
  step::choose_recompute(policies, [&](Recompute policy) {
    built = build(policy);
    if (!built || device.memory == base::Bytes(0)) return true;
    return memory_of(found.largest(), device.extra).total() <= device.memory;
  });
  if (!built) return base::fail(std::move(built).error());
  return found;
}

std::optional<MemoryNeed> counted_memory(const JobSpec& job) {
  const RankDevice device = device_of(job);
  const auto found = rank_footprints(job, device);
  if (!found) return std::nullopt;
  return memory_of(found->largest(), device.extra);
}

std::string room_for_experts(const spec::ModelSpec& model, const step::Choices& choices) {
  const std::int64_t ranks = choices.layout.expert.ranks;
  if (ranks == 1) return "";
  const std::int64_t tokens = choices.sequence / choices.layout.context.ranks * choices.micro_batch;
  return fmt::format(
      "planned for the worst case: {} rows on one rank, if the tokens of all {} choose\n"
      "its experts{}; with an even load {} rows",
      base::grouped(step::most_rows_of_rank(model, tokens, ranks)), ranks,
      model.capacity > 0 ? " up to model.capacity" : " (model.capacity would bound it)",
      base::grouped(step::rows_of_experts(model, tokens)));
}

MemoryNeed memory_of(const step::Footprint& footprint, base::Bytes extra) {
  using step::Storage;
  const step::MemoryPlan& plan = footprint.memory;
  return {.parameters = base::Bytes(plan.of(Storage::kWeights)),
          .gradients = base::Bytes(plan.of(Storage::kGradients)),
          .optimizer = base::Bytes(plan.of(Storage::kMoments) + plan.of(Storage::kRemainders)),
          .activations = base::Bytes(plan.of(Storage::kActivations)),
          .gathered = base::Bytes(plan.of(Storage::kGathered)),
          .workspace = extra + base::Bytes(plan.of(Storage::kInputs) + plan.of(Storage::kScalars)),
          .stage = static_cast<double>(footprint.choices.layout.pipeline.rank)};
}

}  // namespace assay::plan
