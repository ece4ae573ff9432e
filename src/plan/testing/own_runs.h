// Runs of our trainer on one H200: every row of bench/results/train.md and moe.md. No row that
// constants of all software were fitted to is one of them; the trainer's own are fitted to these.
#pragma once

#include <string>
#include <vector>

namespace assay::plan::testing {

struct OwnRun {
  std::string job;
  std::vector<std::string> set;
  double seconds = 0;
  double gib = 0;
};

inline std::vector<OwnRun> own_runs() {
  const std::string dense = "llama3-8b-h200";
  const std::vector<std::string> gpt2 = {"model.extends=gpt2-124m", "batch.sequence=1024",
                                         "batch.micro_batch=64", "batch.accumulate=8",
                                         "train.recompute=none"};
  // Those of moe.md have deterministic attention, which train_step_bench has unless told otherwise.
  const std::string moe = "moe-9b-h200";
  const std::string same_bits = "train.deterministic=true";
  const std::string cheap = "train.recompute=cheap";
  return {
      {dense, {}, 2.568, 123.7},
      {dense, {}, 2.534, 123.7},  // text, at two starts
      {dense, {}, 2.560, 123.7},
      {dense, {"train.precision=fp8"}, 1.884, 123.7},
      {dense, {"train.recompute=full"}, 3.081, 83.2},
      {dense, {"train.recompute=full", "batch.micro_batch=8", "batch.accumulate=1"}, 3.062, 88.5},
      {dense, {"batch.micro_batch=2", "batch.accumulate=4"}, 2.644, 100.8},
      {dense, {cheap, same_bits}, 2.673, 126.3},
      {dense, gpt2, 0.909, 20.5},
      {moe, {cheap, same_bits}, 1.0609, 118.4},
      {moe, {"train.recompute=none", same_bits}, 1.0404, 131.4},
      {moe, {cheap, same_bits, "train.precision=fp8"}, 0.8874, 118.4},
      {moe,
       {cheap, same_bits, "model.experts=64", "model.experts_per_token=6", "model.expert_ffn=1408",
        "model.layers=16"},
       0.6161,
       106}};
}

}  // namespace assay::plan::testing
