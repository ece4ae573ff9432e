#include "plan/model/folded_exchange.h"

#include <algorithm>
#include <cmath>

#include "plan/model/trainer_step.h"

namespace assay::plan {

namespace {

// What data ranks exchange together has parts of equal size, and a norm's weights begin a block of
// their own (step/units.h).
double with_padding(const Work& work, double elements, double norms) {
  const double block = work.shape.norm_block;
  const double gap = std::ceil(work.shape.dim / block) * block - work.shape.dim;
  const double multiple = folded_axes(work).data.ranks * block;
  return std::ceil((elements + norms * gap) / multiple) * multiple;
}

// Of a job that our trainer executes; null: priced by what is known of the shape alone.
const step::UnitSizes* units_of(const Work& work) {
  if (trainer_step(work) == nullptr) return nullptr;
  return &work.trainer->units(work.degrees.tp, work.degrees.ep);
}

// Of the mean layer, with what fills units up.
double elements_of_layer(const Work& work, const step::UnitSizes& sizes) {
  const auto ranks = static_cast<std::int64_t>(folded_axes(work).data.ranks);
  const auto of_block = [&](std::int64_t mlp) {
    const std::int64_t elements =
        work.degrees.units > 1 ? sizes.filled(sizes.attention, ranks) + sizes.filled(mlp, ranks)
                               : sizes.filled(sizes.attention + mlp, ranks);
    return static_cast<double>(elements);
  };
  const double mixtures = work.shape.moe_layers / work.shape.layers;
  double mean = 0;
  if (mixtures < 1) mean += (1 - mixtures) * of_block(sizes.dense_mlp);
  if (mixtures <= 0) return mean;
  const bool spread = sizes.experts > 0;
  return mean + mixtures * (spread ? static_cast<double>(sizes.filled(sizes.beside_experts, ranks))
                                   : of_block(sizes.mixture_mlp));
}

// Of the mean layer, that only some ranks have.
double experts_of_layer(const Work& work) {
  const step::UnitSizes* sizes = work.degrees.ep > 1 ? units_of(work) : nullptr;
  if (sizes == nullptr) return 0;
  const auto ranks = static_cast<std::int64_t>(folded_axes(work).expert_data.ranks);
  return work.shape.moe_layers / work.shape.layers *
         static_cast<double>(sizes->filled(sizes->experts, ranks));
}

// Elements of a layer. Muon's matrices stay whole on their ranks, and are not padded.
double elements_of_layer(const Work& work) {
  const Shape& shape = work.shape;
  const double layer = shape.body_parameters / shape.layers / work.degrees.tp;
  if (work.muon) return layer;
  if (const step::UnitSizes* sizes = units_of(work)) return elements_of_layer(work, *sizes);
  if (work.degrees.units <= 1) return with_padding(work, layer, 2);
  const double mlp = shape.mlp_matrices * shape.dim * shape.ffn / work.degrees.tp + shape.dim;
  return with_padding(work, mlp, 1) + with_padding(work, layer - mlp, 1);
}

}  // namespace

TrainedPart trained_part(const Work& work) {
  const Shape& shape = work.shape;
  const Degrees& d = work.degrees;
  const double block = elements_of_layer(work);
  const double experts = experts_of_layer(work);
  TrainedPart part{.table = with_padding(work, shape.vocab * shape.dim / d.tp, 0)};
  if (const step::UnitSizes* sizes = units_of(work)) {
    const auto ranks = static_cast<std::int64_t>(folded_axes(work).data.ranks);
    part.table = static_cast<double>(sizes->filled(sizes->embedding, ranks));
  }
  if (d.pp <= 1) {
    part.layers = shape.layers;
    part.tables = part.gathered = shape.tied ? 1 : 2;
    part.used = 2;
  } else {
    const StageLayers stages = stage_layers(work);
    part.layers = std::max(stages.first, stages.last);
    part.tables = part.used = part.gathered = 1;
    const double each = block + experts;
    if (stages.most * each > part.layers * each + part.table) {
      part.layers = stages.most;
      part.tables = part.used = part.gathered = 0;
    }
  }
  part.blocks = part.layers * block;
  part.experts = part.layers * experts;
  return part;
}

FoldedAxes folded_axes(const Work& work) {
  const Degrees& d = work.degrees;
  const double shards = d.fsdp > 1 ? d.fsdp : std::max(1.0, d.state_shards);
  // Ranks that share sequences have the same parameters as replicas do, and are neighbours.
  const double data = d.dp * d.cp * d.fsdp;
  const double replicas = std::max(1.0, data / shards);
  // Those of replicas beyond them lie further apart; together they are on all data ranks.
  const double apart = replicas > d.cp ? d.tp * shards : d.tp;
  // Ranks with different experts are shards of all else, and neighbours but for those that share
  // sequences, which have the same experts.
  const auto of_experts = [&](double ranks) { return std::max(1.0, ranks / d.ep); };
  return {.data = {data, d.tp},
          .shards = {shards, d.tp * d.cp},
          .replicas = {replicas, apart},
          .expert_data = {of_experts(data), of_experts(data) > d.cp ? d.tp * d.ep : d.tp},
          .expert_shards = {of_experts(shards), d.tp * d.cp * d.ep}};
}

double units_of_layer(const Work& work) {
  const bool apart = work.degrees.ep > 1 && folded_axes(work).expert_shards.ranks > 1;
  return apart ? 2 : work.degrees.units;
}

double resident_units(const Work& work, double units) {
  const Degrees& d = work.degrees;
  constexpr double kPlaces = 2;  // of blocks' units
  const double kept = std::min(kPlaces, units);
  // A forward pass that follows a backward pass begins where that has ended, and the other way
  // round; of other chunks or micro-batches nothing is there.
  if (d.pp > 1 && d.chunks > 1) return 0;
  const double pairs = d.gpipe && d.pp > 1 ? 0 : work.batch.micros - (d.pp - 1);
  return kept * std::max(1.0, 2 * pairs - 1);
}

double folded_bytes(const Work& work) {
  const TrainedPart part = trained_part(work);
  const FoldedAxes axes = folded_axes(work);
  const double data = axes.data.ranks;
  const double micros = work.batch.micros;
  // What is added is read, the sum is written, and read but by the first; one rank's first
  // micro-batch is the sum.
  const auto added = [&](double made, double ranks) {
    const double own = made / ranks;
    if (ranks <= 1) return (micros - 1) * 3 * made;
    return micros * (made + own) + (micros - 1) * own;
  };
  double elements = added(part.made(), data) + added(part.experts, axes.expert_data.ranks);
  // The two sums of a table that is also the head become one.
  if (work.shape.tied && part.tables > 0) elements += 3 * part.table / data;
  return work.software.gradient_bytes * elements;
}

}  // namespace assay::plan
