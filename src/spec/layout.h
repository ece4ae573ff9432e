// LayoutSpec: how a job is distributed over ranks. Ranks = dp · fsdp · tp · pp · cp · ep.
#pragma once

#include <cstdint>
#include <optional>

namespace assay::spec {

enum class PipelineSchedule {
  kGpipe,
  k1f1b,
  kInterleaved,
  kZbH1,  // like 1F1B, but computes weight gradients later, where 1F1B would be idle
};
// What is gathered at once if parameters are sharded.
enum class ShardUnit {
  kBlock,
  kModule,  // attention, and the MLP or the experts, separately
};

struct LayoutSpec {
  std::optional<std::int64_t> ranks;  // product of the degrees; default: the cluster's devices
  std::int64_t dp = 0;                // replicas; 0: whatever the other degrees leave
  std::int64_t fsdp = 1;              // ranks that shard the training state
  std::int64_t zero = 3;  // what fsdp shards: 1 optimizer, 2 + gradients, 3 + parameters
  ShardUnit unit = ShardUnit::kBlock;
  std::int64_t tp = 1;
  bool sequence_parallel = false;
  std::int64_t pp = 1;
  PipelineSchedule pp_schedule = PipelineSchedule::k1f1b;
  std::int64_t pp_chunks = 1;
  std::int64_t cp = 1;
  std::int64_t ep = 1;

  // The degrees other than dp, multiplied.
  [[nodiscard]] std::int64_t inner_ranks() const { return fsdp * tp * pp * cp * ep; }
  // Ranks that each read a different part of the batch.
  [[nodiscard]] std::int64_t data_ranks() const { return dp * fsdp * ep; }
};

}  // namespace assay::spec
