// Layout: a rank's position among the job's ranks. A program describes one rank; other ranks appear
// in it only through exchanges.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/layout.h"

namespace assay::step {

// A rank's index, and the number of ranks, along one axis of the layout.
struct AxisPosition {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
};

// The kinds of parallelism, and groups that combine several of them. An exchange along an axis is
// among the ranks that differ only along that axis.
enum class Axis : std::uint8_t {
  kNone,
  kData,     // ranks with different tokens: shard, expert, replica and context combined
  kShard,    // ranks that divide the training state, except of experts: shard and expert
  kReplica,  // ranks with the same part of the state: replica and context
  kTensor,
  kContext,
  kExpert,        // ranks with different experts
  kExpertData,    // ranks with the same experts: shard, replica and context
  kExpertShard,   // ranks that divide the state of the same experts
  kPipeline,      // activations between stages, forward
  kPipelineBack,  // their gradients back; a separate group, so that neither waits for the other
  kWorld,         // every rank of the job
};

std::string_view to_text(Axis axis);

struct Layout {
  AxisPosition replica;   // layout.dp
  AxisPosition shard;     // layout.fsdp
  AxisPosition expert;    // layout.ep: which experts of a mixture the rank has
  AxisPosition tensor;    // layout.tp
  AxisPosition context;   // layout.cp
  AxisPosition pipeline;  // layout.pp
  // What shards divide: 1 and 2: optimizer state and gradients; 3: also parameters.
  std::int64_t zero = 3;
  spec::ShardUnit unit = spec::ShardUnit::kBlock;
  spec::PipelineSchedule schedule = spec::PipelineSchedule::k1f1b;
  std::int64_t chunks = 1;  // of layers per stage
  // Tensor-parallel ranks divide the tokens where they do not divide widths: between the products.
  bool sequence_parallel = false;

  // Position among the ranks that divide the training state. Ranks with different experts read
  // different sequences, so for everything except experts they are ordinary shards.
  [[nodiscard]] AxisPosition shards() const { return within(shard, expert); }
  // Position among the ranks that read different sequences; context-parallel ranks read the same
  // ones.
  [[nodiscard]] AxisPosition sequences() const { return within(shards(), replica); }
  // Position among the ranks that each sum a part of the gradients. Shards are contiguous, as are
  // the replicas of one shard: a replica sums a part of its own shard (units.h). For parameters,
  // context-parallel ranks are ordinary replicas.
  [[nodiscard]] AxisPosition data() const { return within(sequences(), context); }
  // The same for experts, among the ranks that have them.
  [[nodiscard]] AxisPosition expert_data() const { return within(within(shard, replica), context); }
  [[nodiscard]] bool spreads_experts() const { return expert.ranks > 1; }
  // Whether weights are gathered before use; those of experts only among the ranks that have them.
  [[nodiscard]] bool gathers_weights() const { return shards().ranks > 1 && zero == 3; }
  [[nodiscard]] bool gathers_experts() const { return shard.ranks > 1 && zero == 3; }
  [[nodiscard]] bool first_stage() const { return pipeline.rank == 0; }
  [[nodiscard]] bool last_stage() const { return pipeline.rank == pipeline.ranks - 1; }

  // This rank among all: tensor-parallel ranks are adjacent, pipeline stages furthest apart, as the
  // planner assumes when it prices links.
  [[nodiscard]] std::int64_t rank() const;
  [[nodiscard]] std::int64_t ranks() const;
  [[nodiscard]] AxisPosition along(Axis axis) const;
  // The ranks of this rank's group along an axis, in the group's order.
  [[nodiscard]] std::vector<std::int64_t> members(Axis axis) const;

 private:
  [[nodiscard]] static AxisPosition within(const AxisPosition& outer, const AxisPosition& inner) {
    return {outer.rank * inner.ranks + inner.rank, outer.ranks * inner.ranks};
  }
};

// Elements [first, first + count).
struct Range {
  std::int64_t first = 0;
  std::int64_t count = 0;

  [[nodiscard]] std::int64_t end() const { return first + count; }
  [[nodiscard]] Range common(const Range& other) const;
  bool operator==(const Range&) const = default;
};

// Refuses layouts that the trainer cannot execute; the error names the key.
base::Result<Layout> layout_of(const spec::LayoutSpec& spec, std::int64_t rank);

}  // namespace assay::step
