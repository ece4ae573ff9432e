// Reading specs: the cost of every verb that takes a job file before it starts.
#include <benchmark/benchmark.h>

#include "machine/discover.h"
#include "spec/load.h"
#include "spec/parameters.h"

namespace {

void load_model(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(assay::spec::load("llama3-8b"));
}
BENCHMARK(load_model)->Unit(benchmark::kMicrosecond);

void load_run_with_overrides(benchmark::State& state) {
  const std::vector<std::string> set = {"model.layers=4", "train.steps=10"};
  for (auto _ : state) {
    benchmark::DoNotOptimize(assay::spec::load("llama3-70b-h200x32", {.overrides = set}));
  }
}
BENCHMARK(load_run_with_overrides)->Unit(benchmark::kMicrosecond);

void count_parameters(benchmark::State& state) {
  const auto loaded = assay::spec::load("moe-9b");
  const auto& model = std::get<assay::spec::ModelSpec>(loaded->spec);
  for (auto _ : state) benchmark::DoNotOptimize(assay::spec::count_parameters(model));
}
BENCHMARK(count_parameters)->Unit(benchmark::kMicrosecond);

void discover_machine(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(assay::machine::discover());
}
BENCHMARK(discover_machine)->Unit(benchmark::kMicrosecond);

}  // namespace
