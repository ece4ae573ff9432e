#include "step/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "step/pipeline.h"
#include "step/shapes.h"

namespace assay::step {
namespace {

constexpr std::int64_t kSmallestBlock = 128;  // suits vector loads and matrix libraries
constexpr std::int64_t kLargestBlock = 32768;
constexpr std::int64_t kBlocksOfLargest = 4096;

std::int64_t up_to(std::int64_t value, std::int64_t multiple_of) {
  return (value + multiple_of - 1) / multiple_of * multiple_of;
}

std::int64_t room_of(const Parameter& p, std::int64_t block) {
  return up_to((p.rows + p.padding_rows) * p.cols, block);
}

enum class Module : std::uint8_t { kBefore, kAttention, kMlp, kAfter };

Module module_of(ModelPart part) {
  switch (part) {
    case ModelPart::kEmbedding:
    case ModelPart::kPositions:
      return Module::kBefore;
    case ModelPart::kFinalNorm:
    case ModelPart::kHead:
      return Module::kAfter;
    case ModelPart::kMlpNorm:
    case ModelPart::kGateUp:
    case ModelPart::kDown:
    case ModelPart::kRouter:
    case ModelPart::kSharedGateUp:
    case ModelPart::kSharedDown:
      return Module::kMlp;
    default:
      return Module::kAttention;
  }
}

// `experts_apart`: the experts of mixtures are separate units.
std::string unit_name(const Parameter& p, bool modules, bool experts_apart) {
  const Module module = module_of(p.part);
  // A table that is also the head is exchanged for both uses, so it must not share a unit with
  // positions.
  if (module == Module::kBefore) return p.part == ModelPart::kPositions ? "positions" : "embedding";
  if (module == Module::kAfter) return "head";
  if (p.rule == UpdateRule::kMuon) return fmt::format("layers.{}.matrices", p.layer);
  if (experts_apart && p.of_experts) return fmt::format("layers.{}.experts", p.layer);
  if (!modules || experts_apart) return fmt::format("layers.{}", p.layer);
  return fmt::format("layers.{}.{}", p.layer, module == Module::kMlp ? "mlp" : "attention");
}

// Within a unit, attention comes before the MLP, so that the order does not depend on the size of
// units, and matrices before vectors, so that there are few ranges with equal weight decay.
bool comes_before(const Parameter& a, const Parameter& b) {
  if (a.unit != b.unit) return a.unit < b.unit;
  if (module_of(a.part) != module_of(b.part)) return module_of(a.part) < module_of(b.part);
  return a.is_vector() < b.is_vector();
}

// The data rank that updates a matrix of Muon's. Matrices of one kind are assigned round-robin by
// layer, each kind starting at a different rank, so that ranks get equally many of each.
std::int64_t owner_of(const Parameter& p, std::int64_t ranks) {
  constexpr ModelPart kKinds[] = {ModelPart::kQkv, ModelPart::kAttentionOut, ModelPart::kGateUp,
                                  ModelPart::kDown};
  const auto kind = std::find(std::begin(kKinds), std::end(kKinds), p.part) - std::begin(kKinds);
  return (p.layer + kind * std::max<std::int64_t>(1, ranks / 4)) % ranks;
}

class UnitMaker {
 public:
  UnitMaker(const spec::ModelSpec& model, const Layout& layout, std::vector<Parameter>& parameters)
      : model_(model), layout_(layout), block_(norm_block(model)), parameters_(parameters) {}

  std::vector<Unit> make() {
    assign();
    std::vector<Parameter*> order;
    for (Parameter& p : parameters_) order.push_back(&p);
    std::stable_sort(order.begin(), order.end(),
                     [](const Parameter* a, const Parameter* b) { return comes_before(*a, *b); });
    std::int64_t first_element = 0;
    for (auto from = order.begin(); from != order.end();) {
      Unit& unit = units_[static_cast<std::size_t>((*from)->unit)];
      const auto to = std::find_if(from, order.end(),
                                   [&](const Parameter* p) { return p->unit != (*from)->unit; });
      std::int64_t room = 0;
      for (auto p = from; p != to; ++p) room += room_of(**p, block_);
      unit.first_element = first_element + (unit.experts ? layout_.expert.rank * room : 0);
      first_element += unit.experts ? layout_.expert.ranks * room : room;
      unit.whole_matrices ? deal_out(unit, {from, to}) : cut(unit, {from, to});
      from = to;
    }
    return std::move(units_);
  }

 private:
  void assign() {
    for (Parameter& p : parameters_) {
      const bool modules = layout_.gathers_weights() && layout_.unit == spec::ShardUnit::kModule;
      const bool apart =
          layout_.spreads_experts() && p.layer != kNoLayer && model_.is_moe_layer(p.layer);
      const std::string name = unit_name(p, modules, apart);
      auto found = std::find_if(units_.begin(), units_.end(),
                                [&](const Unit& unit) { return unit.name == name; });
      if (found == units_.end()) {
        units_.push_back({.name = name, .layer = p.layer, .stage = stage_of(p)});
        found = units_.end() - 1;
        found->whole_matrices = p.rule == UpdateRule::kMuon;
        found->gathered = layout_.gathers_weights();
        if (apart && p.of_experts) {
          found->experts = true;
          found->data = Axis::kExpertData;
          found->shard = Axis::kExpertShard;
          found->gathered = layout_.gathers_experts();
        }
      }
      p.unit = static_cast<std::int32_t>(found - units_.begin());
    }
  }

  [[nodiscard]] std::int64_t stage_of(const Parameter& p) const {
    if (module_of(p.part) == Module::kBefore) return 0;
    if (module_of(p.part) == Module::kAfter) return layout_.pipeline.ranks - 1;
    const std::int64_t chunks = layout_.pipeline.ranks * layout_.chunks;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      if (layers_of_chunk(model_.layers, chunk, chunks).contains(p.layer)) {
        return chunk % layout_.pipeline.ranks;
      }
    }
    return 0;
  }

  // Divides the unit into equal parts.
  void cut(Unit& unit, const std::vector<Parameter*>& list) const {
    for (Parameter* p : list) {
      p->offset = unit.elements;
      unit.elements += room_of(*p, block_);
    }
    const AxisPosition data = layout_.along(unit.data);
    const AxisPosition shards = layout_.along(unit.shard);
    unit.used = unit.elements;
    unit.elements = up_to(unit.elements, data.ranks * block_);
    const std::int64_t each = unit.elements / data.ranks;
    for (std::int64_t rank = 0; rank < data.ranks; ++rank) {
      unit.parts.push_back({rank * each, each});
    }
    unit.part = unit.parts[static_cast<std::size_t>(data.rank)];
    const std::int64_t shard = unit.elements / shards.ranks;
    unit.own = {shards.rank * shard, shard};
  }

  void deal_out(Unit& unit, const std::vector<Parameter*>& list) const {
    const AxisPosition data = layout_.data();
    for (std::int64_t rank = 0; rank < data.ranks; ++rank) {
      Range part{unit.elements, 0};
      for (Parameter* p : list) {
        if (owner_of(*p, data.ranks) != rank) continue;
        p->offset = unit.elements;
        unit.elements += room_of(*p, block_);
      }
      part.count = unit.elements - part.first;
      unit.parts.push_back(part);
    }
    unit.used = unit.elements;
    unit.part = unit.own = unit.parts[static_cast<std::size_t>(data.rank)];
  }

  const spec::ModelSpec& model_;
  const Layout& layout_;
  std::int64_t block_;
  std::vector<Parameter>& parameters_;
  std::vector<Unit> units_;
};

}  // namespace

std::int64_t norm_block(const spec::ModelSpec& model) {
  const BlockShape s = block_shape(model);
  const std::int64_t largest = s.dim * std::max({s.qkv(), s.q, s.inner, s.ffn});
  const auto wanted = static_cast<std::uint64_t>(largest / kBlocksOfLargest);
  return std::clamp(static_cast<std::int64_t>(std::bit_ceil(wanted)), kSmallestBlock,
                    kLargestBlock);
}

std::vector<Unit> make_units(const spec::ModelSpec& model, const Layout& layout,
                             std::vector<Parameter>& parameters) {
  return UnitMaker(model, layout, parameters).make();
}

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
      case ModelPart::kQkv:
        (spread ? sizes.beside_experts : sizes.attention) = used;
        break;
      case ModelPart::kGateUp:
        (spread ? sizes.experts : mixture ? sizes.mixture_mlp : sizes.dense_mlp) = used;
        break;
      case ModelPart::kEmbedding:
        sizes.embedding = used;
        break;
      case ModelPart::kPositions:
        sizes.positions = used;
        break;
      case ModelPart::kFinalNorm:
      case ModelPart::kHead:
        sizes.head = used;
        break;
      default:
        break;
    }
  }
  return sizes;
}

}  // namespace assay::step
