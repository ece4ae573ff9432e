#include "plan/search/offers.h"

#include <fmt/format.h>

#include "plan/cost/money.h"

namespace assay::plan {
namespace {

using base::Money;
using base::Seconds;
using spec::PriceRange;
using spec::PriceSpec;

std::int64_t times_rented(const PriceSpec& offer, std::int64_t devices) {
  return (devices + offer.devices - 1) / offer.devices;
}

base::Result<PriceRange> rent_per_hour(const PriceSpec& offer, std::int64_t devices) {
  const auto times = static_cast<double>(times_rented(offer, devices));
  ASSAY_TRY(const Money low, base::scale(offer.per_hour.low, times));
  ASSAY_TRY(const Money high, base::scale(offer.per_hour.high, times));
  return PriceRange{low, high};
}

base::Result<PriceRange> cost_over(const PriceRange& per_hour, Seconds time) {
  ASSAY_TRY(const Money low, base::cost(per_hour.low, time));
  ASSAY_TRY(const Money high, base::cost(per_hour.high, time));
  return PriceRange{low, high};
}

base::Result<Candidate> on_demand_candidate(Candidate c, const PriceRange& per_hour,
                                            const Completion& done) {
  c.time_p50 = done.p50;
  c.time_p90 = done.p90;
  c.interruptions = done.failures;
  ASSAY_TRY(c.cost_p50, cost_over(per_hour, done.p50));
  ASSAY_TRY(c.cost_p90, cost_over(per_hour, done.p90));
  return c;
}

// For both ends of the price range; times are the same, because policies ignore prices.
base::Result<Candidate> spot_candidate(Candidate c, const RunOnMachines& run,
                                       const PriceRange& spot, const PriceRange& on_demand,
                                       const SearchChoices& choices) {
  const auto play = [&](const Money& full, const Money& reduced) {
    const SpotRun played = spot_run_of(run, choices.risks, full, reduced, choices.limits.deadline);
    c.interval = played.market.interval;
    return spot_outcome(played, c.policy, choices.sampling);
  };
  ASSAY_TRY(const SpotOutcome low, play(on_demand.low, spot.low));
  ASSAY_TRY(const SpotOutcome high, play(on_demand.high, spot.high));
  c.time_p50 = high.time_p50;
  c.time_p90 = high.time_p90;
  c.cost_p50 = {low.cost_p50, high.cost_p50};
  c.cost_p90 = {low.cost_p90, high.cost_p90};
  c.interruptions = high.preemptions;
  c.miss_chance = high.miss_chance;
  return c;
}

// The on-demand offer that a run on spot machines falls back to: the cheapest of the same provider
// or, without one, of any.
const PriceSpec* fallback_of(const PriceSpec& spot, const spec::PriceList& offers,
                             std::int64_t devices) {
  const PriceSpec* best = nullptr;
  const auto better = [&](const PriceSpec& a, const PriceSpec& b) {
    const bool same_a = a.provider == spot.provider;
    const bool same_b = b.provider == spot.provider;
    if (same_a != same_b) return same_a;
    return a.per_hour.high.units() * static_cast<double>(times_rented(a, devices)) <
           b.per_hour.high.units() * static_cast<double>(times_rented(b, devices));
  };
  for (const PriceSpec& offer : offers) {
    const bool usable = offer.market == spec::Market::kOnDemand && is_connected(offer, devices) &&
                        offer.per_hour.low.currency() == spot.per_hour.low.currency();
    if (usable && (best == nullptr || better(offer, *best))) best = &offer;
  }
  return best;
}

}  // namespace

base::Result<std::vector<Candidate>> candidates_by_offer(const Candidate& base,
                                                         const RunOnMachines& run,
                                                         const spec::PriceList& offers,
                                                         const SearchChoices& choices,
                                                         std::vector<Rejection>& rejected) {
  std::vector<Candidate> candidates;
  const auto keep = [&](base::Result<Candidate> made) {
    if (made) {
      candidates.push_back(*std::move(made));
    } else {
      rejected.push_back(
          {fmt::format("{} x {}: {}", base.nodes, base.machines, made.error().line()), 1});
    }
  };
  const Resilience resilience = resilience_of(run, choices.risks);
  const auto done = completion(resilience, run.work, choices.sampling);
  for (const PriceSpec& offer : offers) {
    if (!is_connected(offer, base.devices)) {
      rejected.push_back({fmt::format("price: no network is known between machines of {} {}",
                                      offer.provider, offer.offer),
                          1});
      continue;
    }
    Candidate c = base;
    c.offer = offer;
    c.rented = times_rented(offer, base.devices);
    c.interval = resilience.interval;
    ASSAY_TRY(const PriceRange per_hour, rent_per_hour(offer, base.devices));
    if (offer.market == spec::Market::kOnDemand) {
      keep(done ? on_demand_candidate(c, per_hour, *done)
                : base::Result<Candidate>(base::fail(done.error())));
      continue;
    }
    c.policy = SpotPolicy::kSpot;
    keep(spot_candidate(c, run, per_hour, per_hour, choices));
    const PriceSpec* fallback = fallback_of(offer, offers, base.devices);
    if (!choices.limits.deadline || fallback == nullptr) continue;
    ASSAY_TRY(const PriceRange full, rent_per_hour(*fallback, base.devices));
    c.policy = SpotPolicy::kUniformProgress;
    keep(spot_candidate(c, run, per_hour, full, choices));
  }
  return candidates;
}

std::string_view to_text(SpotPolicy policy) {
  switch (policy) {
    case SpotPolicy::kOnDemand:
      return "on demand";
    case SpotPolicy::kSpot:
      return "spot";
    case SpotPolicy::kUniformProgress:
      return "spot, on demand when behind";
  }
  return "";
}

}  // namespace assay::plan
