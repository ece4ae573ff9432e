// Small jobs and machines for the tests of searches.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "plan/search/search.h"
#include "spec/load.h"

namespace assay::plan::testing {

inline spec::JobSpec job_of(const std::string& preset, const std::vector<std::string>& set = {}) {
  auto loaded = spec::load(preset, {.overrides = set});
  EXPECT_TRUE(loaded.has_value()) << loaded.error().line();
  return std::get<spec::JobSpec>(loaded->spec);
}

// A model of a few billion parameters on 1 to 4 nodes of 4 H200: something is tight everywhere.
inline spec::JobSpec any_job() {
  spec::JobSpec job = job_of("llama3-13b-h200x32");
  job.model.layers = *rc::gen::element(8, 12, 24);
  job.model.dim = *rc::gen::element(2048, 4096);
  job.model.ffn = 3 * job.model.dim;
  job.model.heads = job.model.dim / 128;
  job.model.head_dim = 128;
  job.batch.sequence = *rc::gen::element(1024, 4096);
  job.batch.micro_batch = 1;
  job.batch.accumulate = *rc::gen::element(1, 2, 3);
  job.train.steps = *rc::gen::element(100, 10'000, 100'000);
  job.cluster.nodes = *rc::gen::element(1, 2, 3, 4);
  job.cluster.max_nodes = job.cluster.nodes;
  job.layout = {.ranks = job.cluster.devices(), .dp = job.cluster.devices()};
  return job;
}

inline spec::PriceSpec offer_of(const std::string& provider, spec::Market market, double dollars,
                                std::int64_t devices = 4) {
  const base::Date date{2026, 8, 1};
  const base::Money price(static_cast<std::int64_t>(dollars * 1e6), {}, date);
  return {.provider = provider,
          .offer = "4x H200",
          .device = "h200-sxm",
          .devices = devices,
          .market = market,
          .date = date,
          .per_hour = {price, price},
          .source = "a test",
          .network = true};
}

inline std::vector<Machines> machines_of(const spec::JobSpec& job) {
  return {{"cluster",
           job.cluster,
           {offer_of("A", spec::Market::kOnDemand, 10), offer_of("A", spec::Market::kSpot, 4),
            offer_of("B", spec::Market::kOnDemand, 14, 8)}}};
}

}  // namespace assay::plan::testing
