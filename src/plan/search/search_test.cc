#include "plan/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/search/counted_layout.h"
#include "plan/testing/searches.h"
#include "spec/load.h"

namespace assay::plan {
namespace {

using base::Seconds;
using spec::JobSpec;
using spec::Market;
using testing::job_of;
using testing::offer_of;

constexpr double kHour = 3600;

// Days of training on nodes of 4 H200.
JobSpec long_job() {
  return job_of("llama3-13b-h200x32", {"train.steps=50000"});
}

std::vector<Machines> rented_machines(const JobSpec& job) {
  return {{"h200-4-ib",
           job.cluster,
           {offer_of("A", Market::kOnDemand, 10), offer_of("A", Market::kSpot, 4)}}};
}

// Replicas that share sequences as well are within a node that has no network.
TEST(Search, OneNodeNeedsNoNetwork) {
  JobSpec job = testing::job_of("llama3-13b-h200x32");
  job.cluster = std::get<spec::ClusterSpec>(spec::load("h100-sxm-8")->spec);
  ASSERT_EQ(job.cluster.network.kind, spec::NetworkKind::kNone);
  job.layout = {.ranks = 8, .dp = 8};
  const Work work = work_of(job).value();
  const FastestLayout found = fastest_layout(job, work, 128, work.card.memory, {});
  EXPECT_TRUE(found.best.has_value());
  EXPECT_GT(found.considered, 1000);
}

TEST(Search, MoreMachinesAreFasterAndCostMore) {
  const JobSpec job = long_job();
  const Found found = search(job, rented_machines(job)).value();
  ASSERT_GE(found.front.size(), 3U);
  EXPECT_EQ(found.candidates[*found.fastest].nodes, 8);
  EXPECT_EQ(found.candidates[*found.cheapest].policy, SpotPolicy::kSpot);
  EXPECT_GT(found.considered, 10'000);
  for (const Candidate& c : found.candidates) {
    EXPECT_TRUE(c.misses.empty());
    EXPECT_GT(c.interval, c.choice.step);
    EXPECT_GT(c.time_p50, c.work);
  }
}

TEST(Search, ADeadlineIsKeptWithSpotMachinesWhereTheseSuffice) {
  const JobSpec job = long_job();
  const std::vector<Machines> machines = rented_machines(job);
  const Found free = search(job, machines).value();
  SearchChoices choices;
  choices.limits.deadline = free.candidates[*free.fastest].time_p90 * 1.5;
  const Found found = search(job, machines, choices).value();
  ASSERT_TRUE(found.recommended.has_value());
  const Candidate& best = found.candidates[*found.recommended];
  EXPECT_LE(best.time_p90, *choices.limits.deadline);
  EXPECT_EQ(found.why, "the cheapest that meets the deadline");
  const bool any_policy =
      std::any_of(found.candidates.begin(), found.candidates.end(),
                  [](const Candidate& c) { return c.policy == SpotPolicy::kUniformProgress; });
  EXPECT_TRUE(any_policy);
  // On demand would cost more.
  for (const Candidate& c : found.candidates) {
    EXPECT_TRUE(!c.misses.empty() || best.cost() <= c.cost());
  }
  EXPECT_NE(best.policy, SpotPolicy::kOnDemand);
}

TEST(Search, LimitsThatNothingMeetsAreReported) {
  const JobSpec job = long_job();
  SearchChoices choices;
  choices.limits.deadline = Seconds(kHour);
  const Found found = search(job, rented_machines(job), choices).value();
  EXPECT_FALSE(found.recommended.has_value());
  EXPECT_EQ(found.why, "no configuration meets the limits");
  for (const Candidate& c : found.candidates) {
    EXPECT_THAT(c.misses, ::testing::StartsWith("deadline: 90 % of runs need up to "));
  }
  choices.limits = {.budget = base::Money(1'000'000, {}, {})};
  const Found poor = search(job, rented_machines(job), choices).value();
  EXPECT_THAT(poor.candidates.front().misses,
              ::testing::StartsWith("budget: 90 % of runs cost up to $"));
}

TEST(Search, DevicesStayWithinTheirLimits) {
  const JobSpec job = long_job();
  SearchChoices choices;
  choices.limits.min_devices = 8;
  choices.limits.max_devices = 16;
  const Found found = search(job, rented_machines(job), choices).value();
  ASSERT_FALSE(found.candidates.empty());
  for (const Candidate& c : found.candidates) EXPECT_TRUE(c.devices >= 8 && c.devices <= 16);
}

TEST(Search, ReasonsForWhatIsNotTaken) {
  const JobSpec job = job_of("llama3-70b-h200x32", {"train.steps=1000"});
  const Found found = search(job, rented_machines(job)).value();
  std::string reasons;
  for (const Rejection& r : found.rejected) {
    EXPECT_GT(r.count, 0);
    reasons += r.reason + "\n";
  }
  EXPECT_THAT(reasons, ::testing::HasSubstr("memory: 1 x h200-4-ib: the smallest needs "));
  EXPECT_THAT(reasons, ::testing::HasSubstr("layout.tp: tp 3 does not divide 64 heads"));
  EXPECT_THAT(reasons, ::testing::HasSubstr(
                           "batch: 64 sequences per step are not divisible by 12 data ranks"));
}

TEST(Search, EveryAssumptionHasASource) {
  const JobSpec job = long_job();
  const Found found = search(job, rented_machines(job)).value();
  EXPECT_EQ(found.assumptions.size(), 9U);
  for (const Assumption& a : found.assumptions) {
    EXPECT_FALSE(a.what.empty() || a.value.empty() || a.source.empty());
  }
}

TEST(Search, MoreMemoryIsLeftFreeForSoftwareWhoseNeedIsModelled) {
  const auto left_free = [](std::optional<Framework> framework) {
    const JobSpec job = long_job();
    const auto found =
        search(job, rented_machines(job), {.assumed = {.framework = framework}}).value();
    for (const Assumption& one : found.assumptions)
      if (one.what == "memory left free") return one.value;
    return std::string("not said");
  };
  EXPECT_EQ(left_free(std::nullopt), "1 %");
  EXPECT_EQ(left_free(Framework::kMegatronCore), "22 %");
}

// Zero bubble keeps the rows of every mixture until it makes gradients of weights, and a search
// that forgets them offers what cannot run.
TEST(Search, WhatItListsFitsAsItsPlanSays) {
  JobSpec job = job_of("moe-9b-h200x32", {"train.steps=1000", "batch.micro_batch=1"});
  job.cluster.device.memory = base::Bytes(std::int64_t{40} << 30);
  const Found found = search(job, rented_machines(job)).value();
  ASSERT_TRUE(found.recommended.has_value());
  for (const std::size_t i : found.front) {
    const Candidate& c = found.candidates[i];
    EXPECT_TRUE(c.choice.counted);
    JobSpec run = job;
    run.cluster.nodes = c.nodes;
    run.layout = c.choice.layout;
    run.batch = c.choice.batch;
    run.train.recompute = recompute_key(c.choice.recompute);
    const Plan plan = plan_of("run", run);
    ASSERT_TRUE(plan.memory && plan.memory->counted);
    EXPECT_TRUE(plan.memory->fits());
    EXPECT_EQ(plan.memory->need.total(), c.choice.memory.total());
  }
}

// Where the closed form is far too low, the next fastest is taken, down to what fits.
TEST(Search, WhatDoesNotFitAsCountedIsNotTaken) {
  JobSpec job = long_job();
  const Work work = work_of(job).value();
  const base::Bytes memory(std::int64_t{60} << 30);
  FastestLayout found = fastest_layout(job, work, sequences_per_step(job), work.card.memory, {});
  ASSERT_GT(found.best->memory.total(), memory);  // as if 141 GB had been predicted to be enough
  const LayoutSearch search{job, work, sequences_per_step(job), memory};
  const auto choice = fastest_counted(search, std::move(found), {});
  ASSERT_TRUE(choice.has_value());
  EXPECT_TRUE(choice->counted);
  EXPECT_LE(choice->memory.total(), memory);
}

// Of software whose memory is modelled, what needs nearly all of it is offered where nothing else
// is, and the answer says so.
TEST(Search, WhatFitsTightlyIsOfferedWhereNothingElseDoes) {
  JobSpec job = long_job();
  job.cluster.nodes = job.cluster.max_nodes = 1;
  job.layout = {.ranks = 4, .dp = 1, .fsdp = 4};
  SearchChoices choices{.assumed = {.framework = Framework::kMegatronCore}};
  const Work work = work_of(job, choices.assumed).value();
  const auto least = fastest_layout(job, work, sequences_per_step(job), base::Bytes(1), {});
  job.cluster.device.memory = base::Bytes(least.least_memory.count() * 11 / 10);
  const Found found = search(job, rented_machines(job), choices).value();
  ASSERT_TRUE(found.recommended.has_value());
  EXPECT_TRUE(found.candidates[*found.recommended].choice.tight);
  const bool told =
      std::any_of(found.assumptions.begin(), found.assumptions.end(), [](const Assumption& one) {
        return one.source ==
               "may not fit: 0.79 to 1.28 times the predicted is needed (80 % interval)";
      });
  EXPECT_TRUE(told);
  choices.limits.memory_headroom = 0.2;
  EXPECT_FALSE(search(job, rented_machines(job), choices)->recommended.has_value());
}

TEST(Search, ARangeOfPricesIsARangeOfCosts) {
  const JobSpec job = long_job();
  spec::PriceSpec offer = offer_of("A", Market::kOnDemand, 20);
  offer.per_hour.low = base::Money(10'000'000, {}, {});
  const Found found = search(job, {{"h200-4-ib", job.cluster, {offer}}}).value();
  for (const Candidate& c : found.candidates) {
    EXPECT_NEAR(c.cost_p50.high.units() / c.cost_p50.low.units(), 2, 1e-6);
  }
}

TEST(Search, CurrenciesAreNotMixed) {
  const JobSpec job = long_job();
  spec::PriceSpec euros = offer_of("E", Market::kOnDemand, 1);
  const base::Money price(1'000'000, {{'E', 'U', 'R'}}, {});
  euros.per_hour = {price, price};
  const Found found =
      search(job, {{"h200-4-ib", job.cluster, {offer_of("A", Market::kOnDemand, 10), euros}}})
          .value();
  for (const Candidate& c : found.candidates) EXPECT_EQ(c.offer.provider, "A");
}

TEST(Search, SaysWhyNothingIsLeft) {
  const JobSpec job = long_job();
  const auto nothing = [&](const spec::PriceSpec& offer, SearchChoices choices = {}) {
    choices.limits.min_devices = 8;  // two machines
    const Found found = search(job, {{"h200-4-ib", job.cluster, {offer}}}, choices).value();
    EXPECT_FALSE(found.recommended);
    return found;
  };
  const spec::PriceSpec dollars = offer_of("A", Market::kOnDemand, 10);
  SearchChoices euros;
  euros.limits.budget = base::Money(1'000'000'000'000, {{'E', 'U', 'R'}}, {});
  const Found other = nothing(dollars, euros);
  EXPECT_EQ(other.why,
            "the job fits, but its offers are in USD, not EUR, and no exchange rate is assumed");
  EXPECT_EQ(other.unoffered, "");
  spec::PriceSpec alone = dollars;
  alone.network = false;
  const Found unoffered = nothing(alone);
  EXPECT_EQ(unoffered.unoffered, "no offer of that many machines states the network between them");
  EXPECT_EQ(unoffered.why, "the job fits, but " + unoffered.unoffered);
  SearchChoices soon;
  soon.limits.deadline = Seconds(1);
  EXPECT_EQ(nothing(dollars, soon).why, "no configuration meets the limits");
  SearchChoices small;
  small.limits.memory = base::Bytes(1 << 20);
  EXPECT_EQ(nothing(dollars, small).why,
            "the job does not fit on any of the machines within --memory 1.00 MiB");
  // Limits that leave as much as there is are not the reason.
  small.limits.max_devices = 1'000'000'000;
  EXPECT_EQ(nothing(dollars, small).why,
            "the job does not fit on any of the machines within --memory 1.00 MiB");
}

TEST(Search, WhatCannotBeSearchedIsRefused) {
  JobSpec job = long_job();
  const auto refusal = [&](const std::vector<Machines>& machines, const SearchChoices& choices) {
    const auto found = search(job, machines, choices);
    return found ? "" : found.error().line();
  };
  EXPECT_EQ(refusal({{"h200-4-ib", job.cluster, {}}}, {}),
            "price: none is known for 'NVIDIA H200'; add a [[price]] to the job; its keys: assay "
            "presets keys price");
  SearchChoices late;
  late.limits.deadline = Seconds(-1);
  EXPECT_EQ(refusal(rented_machines(job), late), "deadline: must be greater than 0");
  SearchChoices full;
  full.limits.memory_headroom = 1;
  EXPECT_EQ(refusal(rented_machines(job), full),
            "memory headroom: must be a fraction of the memory, from 0 to less than 1");
  SearchChoices none;
  none.limits.min_devices = 9;
  none.limits.max_devices = 8;
  EXPECT_EQ(refusal(rented_machines(job), none), "devices: at least 9 and at most 8");
  job.train.steps.reset();
  EXPECT_EQ(refusal(rented_machines(job), {}),
            "train: the job does not say how long it trains; set train.steps, train.tokens or "
            "train.tokens_per_matmul_parameter");
}

TEST(Search, MachinesAreTheJobsOwnAndPresets) {
  const JobSpec job = job_of("nanochat-d26-h100");
  const spec::PriceList prices = spec::preset_prices().value();
  const auto own = machines_for(job, "job", prices, false).value();
  ASSERT_EQ(own.size(), 1U);
  EXPECT_EQ(own[0].offers.size(), 9U);
  const auto all = machines_for(job, "job", prices, true).value();
  EXPECT_GT(all.size(), 4U);
  for (const Machines& m : all) EXPECT_FALSE(m.offers.empty()) << m.name;
  // The job's cluster is not searched once more as the preset that it is.
  const auto names = [&](const std::vector<std::string>& sets) {
    const JobSpec two = job_of("nanochat-d26-h100", sets);
    std::vector<std::string> found;
    const auto machines = machines_for(two, "job", prices, true).value();
    for (const Machines& m : machines) found.push_back(m.name);
    return found;
  };
  EXPECT_THAT(names({}), ::testing::Not(::testing::Contains("h100-sxm-8")));
  EXPECT_THAT(names({"cluster.extends=b200-sxm-8", "cluster.nodes=8", "layout.dp=8"}),
              ::testing::AllOf(::testing::Contains("h100-sxm-8"),
                               ::testing::Not(::testing::Contains("b200-sxm-8"))));
  EXPECT_THAT(names({"cluster.numa_nodes=1"}), ::testing::Contains("h100-sxm-8"));
  const Found found = search(job, all).value();
  ASSERT_TRUE(found.recommended.has_value());
}

}  // namespace
}  // namespace assay::plan
