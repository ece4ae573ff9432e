#include "plan/exchange/sharded_muon.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "spec/parameters.h"
#include "step/program.h"

namespace assay::plan {
namespace {

using spec::ParameterGroup;
using step::CollectiveKind;

// AdamW's tensors below this are summed everywhere and updated by every rank.
constexpr std::int64_t kSmallTensor = 1024;

std::int64_t to_multiple(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

class Exchanges {
 public:
  explicit Exchanges(const spec::JobSpec& job)
      : ranks_(job.layout.fsdp), embeddings_(step::numerics_of(job.train.precision).weights) {}

  // One exchange per tensor, each cut into equal shares.
  void add_adamw(const ParameterGroup& g) {
    const bool small = g.elements_each() < kSmallTensor;
    const std::int64_t each = small ? g.elements_each() : to_multiple(g.elements_each(), ranks_);
    GroupTraffic row{.group = g.name,
                     .parameters = {g.name},
                     .optimizer = spec::Optimizer::kAdamw,
                     .type = type_of(g),
                     .gradient_type = type_of(g),
                     .tensors = g.count,
                     .padded = g.count,
                     .elements_each = g.elements_each(),
                     .elements = each * g.count};
    send(std::move(row), each, g.count, small);
  }

  // Tensors of one shape are stacked, filled up with zeros until every rank gets the same number of
  // whole ones (Muon's update is of the whole matrix), and exchanged at once.
  void add_stack(const std::vector<ParameterGroup>& same_shape) {
    const ParameterGroup& first = same_shape.front();
    GroupTraffic row{.group = fmt::format("muon {} x {}", first.rows, first.cols),
                     .parameters = {},
                     .optimizer = spec::Optimizer::kMuon,
                     .type = type_of(first),
                     .gradient_type = type_of(first),
                     .elements_each = first.elements_each()};
    for (const ParameterGroup& g : same_shape) {
      row.parameters.push_back(g.name);
      row.tensors += g.count;
    }
    row.padded = to_multiple(row.tensors, ranks_);
    row.elements = row.padded * row.elements_each;
    const std::int64_t stack = row.elements;
    send(std::move(row), stack, 1, false);
  }

  Communication result;

 private:
  // Embeddings have two bytes and all else is fp32, whose products are made in two or one.
  [[nodiscard]] step::Dtype type_of(const ParameterGroup& g) const {
    return g.role == spec::Role::kEmbedding ? embeddings_ : step::Dtype::kF32;
  }

  void send(GroupTraffic row, std::int64_t message, std::int64_t calls, bool everywhere) {
    const auto exchange = [&](CollectiveKind kind) {
      result.exchanges.push_back({{kind, row.type, message, ranks_}, calls});
    };
    if (everywhere) {
      row.volume.all_reduce = message * calls;
      exchange(CollectiveKind::kAllReduce);
    } else {
      row.volume.reduce_scatter = message * calls;
      row.volume.all_gather = message * calls;
      exchange(CollectiveKind::kReduceScatter);
      exchange(CollectiveKind::kAllGather);
    }
    result.groups.push_back(std::move(row));
  }

  std::int64_t ranks_;
  step::Dtype embeddings_;
};

// By shape, smallest first.
std::vector<std::vector<ParameterGroup>> stacks_of(std::vector<ParameterGroup> matrices) {
  const auto shape = [](const ParameterGroup& g) { return std::pair(g.rows, g.cols); };
  std::stable_sort(matrices.begin(), matrices.end(),
                   [&](const auto& a, const auto& b) { return shape(a) < shape(b); });
  std::vector<std::vector<ParameterGroup>> stacks;
  for (const ParameterGroup& g : matrices) {
    if (stacks.empty() || shape(stacks.back().front()) != shape(g)) stacks.emplace_back();
    stacks.back().push_back(g);
  }
  return stacks;
}

}  // namespace

bool is_sharded_muon(const spec::JobSpec& job) {
  const spec::LayoutSpec& l = job.layout;
  return job.train.optimizer == spec::Optimizer::kMuon && l.fsdp > 1 && l.zero < 3 &&
         l.dp * l.tp * l.pp * l.cp * l.ep == 1;
}

Communication sharded_muon(const spec::JobSpec& job) {
  Exchanges exchanges(job);
  std::vector<ParameterGroup> matrices;
  for (const ParameterGroup& group : spec::parameters_of(job.model).groups) {
    if (group.role == spec::Role::kMatrix) {
      matrices.push_back(group);
    } else {
      exchanges.add_adamw(group);
    }
  }
  for (const auto& stack : stacks_of(std::move(matrices))) exchanges.add_stack(stack);
  exchanges.result.scheme =
      fmt::format("sharded Muon + AdamW over {} ranks, as in nanochat", job.layout.fsdp);
  return std::move(exchanges.result);
}

}  // namespace assay::plan
