// Runs of our trainer on one H200, as bench/results/train.md has them. No row that constants of all
// software were fitted to is one of them; the trainer's own are fitted to these.
#pragma once

#include <string>
#include <vector>

namespace assay::plan::testing {

struct OwnRun {
  std::vector<std::string> set;  // of the job llama3-8b-h200
  double seconds = 0;
  double gib = 0;
};

inline std::vector<OwnRun> own_runs() {
  const std::vector<std::string> gpt2 = {"model.extends=gpt2-124m", "batch.sequence=1024",
                                         "batch.micro_batch=64", "batch.accumulate=8",
                                         "train.recompute=none"};
  return {{{}, 2.568, 123.7},
          {{"train.precision=fp8"}, 1.884, 123.7},
          {{"train.recompute=full"}, 3.081, 83.2},
          {{"train.recompute=full", "batch.micro_batch=8", "batch.accumulate=1"}, 3.062, 88.5},
          {{"batch.micro_batch=2", "batch.accumulate=4"}, 2.644, 100.8},
          {gpt2, 0.909, 20.5}};
}

}  // namespace assay::plan::testing
