// Layout: a rank's place among the job's ranks. A program is one rank's; other ranks appear in it
// through exchanges only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/layout.h"

namespace assay::step {

// A rank among those along one axis of the layout.
struct Place {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
};

// The kinds of parallelism, and two groups that span several of them. An exchange is among the
// ranks that differ along one of these and agree in everything else.
enum class Axis : std::uint8_t {
  kNone,
  kData,     // all that have different tokens: shards, experts, replicas and context together
  kShard,    // those that divide the training state, but that of experts: shards and experts
  kReplica,  // those that have the same part of it: replicas and context together
  kTensor,
  kContext,
  kExpert,        // those that have different experts
  kExpertData,    // all that have the same experts: shards, replicas and context together
  kExpertShard,   // those that divide the state of the same experts
  kPipeline,      // activations between stages, forward
  kPipelineBack,  // and their gradients back: a group of its own, for neither to wait for the other
  kWorld,         // every rank of the job
};

std::string_view to_text(Axis axis);

struct Layout {
  Place replica;   // layout.dp
  Place shard;     // layout.fsdp
  Place expert;    // layout.ep: who has which experts of a mixture
  Place tensor;    // layout.tp
  Place context;   // layout.cp
  Place pipeline;  // layout.pp
  // What shards divide: 1 and 2 the optimizer's state and gradients, 3 parameters as well.
  std::int64_t zero = 3;
  spec::ShardUnit unit = spec::ShardUnit::kBlock;
  spec::PipelineSchedule schedule = spec::PipelineSchedule::k1f1b;
  std::int64_t chunks = 1;  // of layers that a stage has
  // Tensor-parallel ranks have a part of the tokens each where they do not have a part of the
  // widths: between the products.
  bool sequence_parallel = false;

  // Who divides the training state. Ranks with different experts read different sequences, so for
  // everything but the experts they are shards like any others.
  [[nodiscard]] Place shards() const { return within(shard, expert); }
  // Who reads which sequences. Ranks that share sequences (context) read the same ones.
  [[nodiscard]] Place sequences() const { return within(shards(), replica); }
  // Who adds up which part of the gradients. Shards are neighbours here, and so are the replicas of
  // one shard: what a replica adds up is a part of its own shard (units.h). For parameters, ranks
  // that share sequences are replicas like any others.
  [[nodiscard]] Place data() const { return within(sequences(), context); }
  // The same of experts, among the ranks that have them.
  [[nodiscard]] Place expert_data() const { return within(within(shard, replica), context); }
  [[nodiscard]] bool spreads_experts() const { return expert.ranks > 1; }
  // Before they are used; of experts that only some ranks have, only these gather them.
  [[nodiscard]] bool gathers_weights() const { return shards().ranks > 1 && zero == 3; }
  [[nodiscard]] bool gathers_experts() const { return shard.ranks > 1 && zero == 3; }
  [[nodiscard]] bool first_stage() const { return pipeline.rank == 0; }
  [[nodiscard]] bool last_stage() const { return pipeline.rank == pipeline.ranks - 1; }

  // This rank among all: tensor-parallel ranks are neighbours, stages of the pipeline furthest
  // apart, as the planner assumes when it prices links.
  [[nodiscard]] std::int64_t rank() const;
  [[nodiscard]] std::int64_t ranks() const;
  [[nodiscard]] Place along(Axis axis) const;
  // The ranks of this rank's group along an axis, in the group's order.
  [[nodiscard]] std::vector<std::int64_t> members(Axis axis) const;

 private:
  [[nodiscard]] static Place within(const Place& outer, const Place& inner) {
    return {outer.rank * inner.ranks + inner.rank, outer.ranks * inner.ranks};
  }
};

// Elements [first, first + count) of something.
struct Range {
  std::int64_t first = 0;
  std::int64_t count = 0;

  [[nodiscard]] std::int64_t end() const { return first + count; }
  [[nodiscard]] Range common(const Range& other) const;
  bool operator==(const Range&) const = default;
};

// Layouts that the trainer cannot execute are refused, naming the key.
base::Result<Layout> layout_of(const spec::LayoutSpec& spec, std::int64_t rank);

}  // namespace assay::step
