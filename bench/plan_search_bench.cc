// The cost of a search over layouts: a prediction of time and memory, single and by the hundred
// thousand, and whether it grows with the devices.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "plan/search/fastest_layout.h"
#include "spec/load.h"

namespace {

using assay::plan::Work;

// Llama 3 70B on nodes of 8 H100 with a network port each, 4 sequences per device and step.
assay::spec::JobSpec run_on(std::int64_t devices) {
  const std::string nodes = std::to_string(devices / 8);
  const std::vector<std::string> set = {"cluster.devices_per_node=8",
                                        "cluster.device.extends=h100-sxm",
                                        "cluster.link.kind=nvswitch",
                                        "cluster.network.bandwidth=400 GB/s",
                                        "cluster.max_nodes=" + nodes,
                                        "cluster.nodes=" + nodes,
                                        "layout.dp=" + nodes,
                                        "layout.fsdp=1",
                                        "layout.tp=8",
                                        "batch.micro_batch=1",
                                        "batch.accumulate=32"};
  auto loaded = assay::spec::load("llama3-70b-h200x32", {.overrides = set});
  if (!loaded) {
    fmt::print(stderr, "{}\n", loaded.error().line());
    std::abort();
  }
  return std::get<assay::spec::JobSpec>(loaded->spec);
}

// From a layout to seconds and bytes.
void predict_one(benchmark::State& state) {
  const auto run = run_on(state.range(0));
  const assay::plan::ModelConstants constants;
  Work work = *assay::plan::work_of(run);
  for (auto _ : state) {
    assay::plan::spread(work, run.layout, run.batch);
    benchmark::DoNotOptimize(assay::plan::step_seconds(work, constants.time));
    benchmark::DoNotOptimize(assay::plan::memory_need(work, constants.memory));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(predict_one)->Arg(8)->Arg(1024)->Arg(100'000);

// Every layout, micro-batch and recomputation, each predicted: time and memory.
void predict_all(benchmark::State& state) {
  const auto run = run_on(state.range(0));
  const std::int64_t sequences = assay::plan::sequences_per_step(run);
  const assay::plan::ModelConstants constants;
  Work work = *assay::plan::work_of(run);
  std::int64_t predicted = 0;
  for (auto _ : state) {
    for (const auto& layout : assay::plan::layouts_of(run, sequences).valid) {
      const std::int64_t per_rank = sequences / layout.data_ranks();
      for (const std::int64_t micro_batch : assay::plan::divisors_of(per_rank)) {
        auto batch = run.batch;
        batch.micro_batch = micro_batch;
        batch.accumulate = per_rank / micro_batch;
        assay::plan::spread(work, layout, batch);
        for (const auto kind : assay::plan::recomputations_of(work.software.framework)) {
          work.recompute = kind;
          benchmark::DoNotOptimize(assay::plan::step_seconds(work, constants.time));
          benchmark::DoNotOptimize(assay::plan::memory_need(work, constants.memory));
          ++predicted;
        }
      }
    }
  }
  state.SetItemsProcessed(predicted);
}
BENCHMARK(predict_all)->Arg(1024)->Unit(benchmark::kMillisecond);

// The same as searches do it, which predict no time of what does not fit.
void find_fastest(benchmark::State& state) {
  const auto run = run_on(state.range(0));
  const std::int64_t sequences = assay::plan::sequences_per_step(run);
  const Work work = *assay::plan::work_of(run);
  std::int64_t considered = 0;
  for (auto _ : state) {
    const auto found = assay::plan::fastest_layout(run, work, sequences, work.card.memory, {});
    considered += found.considered;
  }
  state.SetItemsProcessed(considered);
}
BENCHMARK(find_fastest)->Arg(8)->Arg(1024)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
