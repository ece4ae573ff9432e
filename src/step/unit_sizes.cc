#include "step/unit_sizes.h"

#include <vector>

#include "step/units.h"

namespace assay::step {

UnitSizes unit_sizes(const spec::ModelSpec& model, std::int64_t tensor_ranks,
                     std::int64_t expert_ranks) {
  // With kModule and shards, attention and MLP of a block are separate units.
  Layout layout{.unit = spec::ShardUnit::kModule};
  layout.tensor.ranks = tensor_ranks;
  layout.expert.ranks = expert_ranks;
  layout.shard.ranks = 2;
  std::vector<std::int32_t> layers;  // one of each kind
  for (const bool mixture : {false, true}) {
    for (std::int32_t layer = 0; layer < model.layers; ++layer) {
      if (model.is_moe_layer(layer) != mixture) continue;
      layers.push_back(layer);
      break;
    }
  }
  auto parameters = list_parameters(model, spec::Optimizer::kAdamw, layout, layers);
  const std::vector<Unit> units = make_units(model, layout, parameters);
  UnitSizes sizes{.block = norm_block(model)};
  for (const Parameter& p : parameters) {
    const std::int64_t used = units[static_cast<std::size_t>(p.unit)].used;
    const bool mixture = p.layer != kNoLayer && model.is_moe_layer(p.layer);
    const bool spread = mixture && expert_ranks > 1;
    switch (p.part) {
      case Part::kQkv:
        (spread ? sizes.beside_experts : sizes.attention) = used;
        break;
      case Part::kGateUp:
        (spread ? sizes.experts : mixture ? sizes.mixture_mlp : sizes.dense_mlp) = used;
        break;
      case Part::kEmbedding:
        sizes.embedding = used;
        break;
      case Part::kPositions:
        sizes.positions = used;
        break;
      case Part::kFinalNorm:
      case Part::kHead:
        sizes.head = used;
        break;
      default:
        break;
    }
  }
  return sizes;
}

}  // namespace assay::step
