// Pricing a collective: the cost that a search over layouts has about a hundred times for each
// layout.
#include <benchmark/benchmark.h>

#include "plan/network/network.h"
#include "spec/load.h"

namespace {

using assay::step::CollectiveKind;

void price_collective(benchmark::State& state, CollectiveKind kind) {
  const auto loaded = assay::spec::load("p4d-24xlarge");
  const auto& cluster = std::get<assay::spec::ClusterSpec>(loaded->spec);
  const auto network = assay::plan::Network::of(cluster);
  const assay::plan::RankGroup group = network->group(state.range(0));
  assay::step::Collective collective{
      .kind = kind, .type = assay::step::Dtype::kBf16, .elements = 1 << 20};
  for (auto _ : state) {
    ++collective.elements;
    benchmark::DoNotOptimize(network->time(collective, group));
  }
}
BENCHMARK_CAPTURE(price_collective, all_reduce, CollectiveKind::kAllReduce)->Arg(8)->Arg(100'000);
BENCHMARK_CAPTURE(price_collective, all_gather, CollectiveKind::kAllGather)->Arg(8)->Arg(100'000);
BENCHMARK_CAPTURE(price_collective, all_to_all, CollectiveKind::kAllToAll)->Arg(8)->Arg(100'000);

}  // namespace
