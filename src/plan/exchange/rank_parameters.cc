#include "plan/exchange/rank_parameters.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "step/pipeline.h"
#include "step/shapes.h"

namespace assay::plan {
namespace {

using spec::LayoutSpec;
using spec::ModelSpec;
using spec::ParameterGroup;

std::int64_t rounded_up_quotient(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// One rank's part of a tensor: heads, the width of the MLP and the vocabulary are cut, what every
// rank applies to the whole residual stream is not.
ParameterGroup cut_by_tp(ParameterGroup g, const ModelSpec& m, std::int64_t tp) {
  const std::string_view name = g.name;
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const step::BlockShape shape = step::block_shape(m, tp);
  if (is_one_of({"embedding", "head"})) {
    g.rows = rounded_up_quotient(g.rows, tp);
  } else if (is_one_of({"attn_q", "attn_kv", "mlp_gate", "mlp_up", "expert_gate", "expert_up",
                        "shared_gate", "shared_up"})) {
    g.rows /= tp;
  } else if (is_one_of({"attn_o", "mlp_down", "expert_down", "shared_down", "mlp_gate_bias",
                        "mlp_up_bias", "expert_gate_bias", "expert_up_bias"})) {
    g.cols /= tp;
  } else if (is_one_of({"attn_k", "attn_v"})) {
    g.rows = shape.kv;
  } else if (name == "value_embeddings") {
    g.cols = shape.kv;
  } else if (name == "value_gate") {
    g.rows = shape.kv / m.head_dim;
  } else if (name == "attn_qkv_bias") {
    g.cols = shape.qkv();
  }
  return g;
}

// Location in the model a group's tensors are.
enum class Location { kStart, kEnd, kEveryBlock, kDenseBlocks, kMoeBlocks, kValueBlocks };

Location location_of(const ParameterGroup& g) {
  const std::string_view name = g.name;
  if (g.expert || name.starts_with("router") || name.starts_with("shared_"))
    return Location::kMoeBlocks;
  if (name.starts_with("value_")) return Location::kValueBlocks;
  if (name.starts_with("mlp_") && !name.starts_with("mlp_norm")) return Location::kDenseBlocks;
  if (name.starts_with("attn_") || name.starts_with("mlp_norm")) return Location::kEveryBlock;
  if (name == "head" || name.starts_with("final_norm")) return Location::kEnd;
  return Location::kStart;
}

bool is_attention(const ParameterGroup& g) {
  return g.name.starts_with("attn_") || g.name.starts_with("value_");
}

// What distinguishes one block from another.
struct BlockKind {
  bool moe = false;
  bool value = false;
  auto operator<=>(const BlockKind&) const = default;

  [[nodiscard]] bool has(Location where) const {
    switch (where) {
      case Location::kEveryBlock:
        return true;
      case Location::kDenseBlocks:
        return !moe;
      case Location::kMoeBlocks:
        return moe;
      case Location::kValueBlocks:
        return value;
      case Location::kStart:
      case Location::kEnd:
        break;
    }
    return false;
  }
};

// How many blocks of each kind a stage has. Value embeddings are in every second, the last among
// them.
std::map<BlockKind, std::int64_t> blocks_of(const ModelSpec& m, const LayoutSpec& l,
                                            std::int64_t stage) {
  std::map<BlockKind, std::int64_t> blocks;
  for (std::int64_t chunk = stage; chunk < l.pp * l.pp_chunks; chunk += l.pp) {
    const step::Layers layers = step::layers_of_chunk(m.layers, chunk, l.pp * l.pp_chunks);
    for (std::int64_t layer = layers.first; layer < layers.end; ++layer) {
      const bool moe = m.is_moe_layer(layer);
      const bool value = m.value_embeddings && (m.layers - 1 - layer) % 2 == 0;
      ++blocks[{moe, value}];
    }
  }
  return blocks;
}

}  // namespace

RankParameters parameters_of_stage(const spec::JobSpec& job, std::int64_t stage) {
  const ModelSpec& m = job.model;
  const LayoutSpec& l = job.layout;
  const bool last = stage == l.pp - 1;
  RankParameters held{.stage = stage, .groups = {}, .units = {}};
  std::vector<Location> where;
  for (const ParameterGroup& group : spec::parameters_of(m).groups) {
    held.groups.push_back({cut_by_tp(group, m, l.tp), group.elements_each()});
    held.groups.back().part.count = 0;
    where.push_back(location_of(group));
  }

  const auto add_unit = [&](std::int64_t count, auto tensors_of) {
    ExchangeUnit unit{std::vector<std::int64_t>(held.groups.size()), count};
    for (std::size_t i = 0; i < held.groups.size(); ++i) {
      unit.tensors[i] = tensors_of(i);
      held.groups[i].part.count += unit.tensors[i] * count;
    }
    const bool empty = std::all_of(unit.tensors.begin(), unit.tensors.end(),
                                   [](std::int64_t tensors) { return tensors == 0; });
    if (!empty) held.units.push_back(std::move(unit));
  };
  const auto outside_blocks = [&](Location place) {
    add_unit(1, [&](std::size_t i) { return where[i] == place ? std::int64_t{1} : 0; });
  };
  // The last stage multiplies by a tied head, which is the embedding of the first.
  const bool tied_copy = last && stage > 0 && m.tied;

  if (stage == 0) outside_blocks(Location::kStart);
  for (const auto& [kind, count] : blocks_of(m, l, stage)) {
    const auto in_block = [&, kind = kind](std::size_t i) -> std::int64_t {
      if (!kind.has(where[i])) return 0;
      return held.groups[i].part.expert ? m.experts / l.ep : 1;
    };
    if (l.unit == spec::ShardUnit::kBlock) {
      add_unit(count, in_block);
      continue;
    }
    for (const bool attention : {true, false}) {
      add_unit(count, [&](std::size_t i) -> std::int64_t {
        return is_attention(held.groups[i].part) == attention ? in_block(i) : 0;
      });
    }
  }
  if (last) {
    add_unit(1, [&](std::size_t i) -> std::int64_t {
      return where[i] == Location::kEnd || (tied_copy && held.groups[i].part.name == "embedding");
    });
  }
  return held;
}

std::int64_t RankParameters::elements() const {
  std::int64_t sum = 0;
  for (const RankParameterGroup& group : groups) sum += group.part.parameters();
  return sum;
}

RankParameters parameters_of_rank(const spec::JobSpec& job) {
  RankParameters first = parameters_of_stage(job, 0);
  if (job.layout.pp == 1) return first;
  RankParameters last = parameters_of_stage(job, job.layout.pp - 1);
  return last.elements() > first.elements() ? last : first;
}

}  // namespace assay::plan
