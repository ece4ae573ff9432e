// What must hold for every search, whatever the job, the machines and the prices are.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "base/pareto.h"
#include "plan/testing/searches.h"
#include "spec/rules.h"

namespace assay::plan {
namespace {

using base::Seconds;
using spec::JobSpec;
using testing::any_job;
using testing::machines_of;

constexpr double kSumRounding = 1e-9;  // for sums in another order

SearchChoices quick_choices() {
  SearchChoices choices;
  choices.sampling.trials = 40;
  return choices;
}

base::Bytes any_memory() {
  return base::Bytes(*rc::gen::inRange<std::int64_t>(2, 150) << 30);
}

base::Money dollars(double amount) {
  return {static_cast<std::int64_t>(amount * 1e6), {}, {}};
}

RC_GTEST_PROP(SearchProperty, TheFastestLayoutIsTheFastestPrediction, ()) {
  JobSpec job = any_job();
  job.cluster.nodes = *rc::gen::element(1, 2);
  const std::int64_t sequences = 4 * *rc::gen::element(2, 6);
  const Work work = work_of(job).value();
  const base::Bytes memory = any_memory();
  const FastestLayout found = fastest_layout(job, work, sequences, memory, {});

  Seconds best(std::numeric_limits<double>::infinity());
  std::int64_t considered = 0;
  for (const spec::LayoutSpec& layout : layouts_of(job, sequences).valid) {
    for (const std::int64_t micro_batch : divisors_of(sequences / layout.data_ranks())) {
      for (const auto recompute : {spec::Recompute::kNone, spec::Recompute::kCheap,
                                   spec::Recompute::kFfn, spec::Recompute::kFull}) {
        job.layout = layout;
        job.batch.micro_batch = micro_batch;
        job.batch.accumulate = sequences / layout.data_ranks() / micro_batch;
        job.train.recompute = recompute;
        if (!spec::fills_pipeline(job.layout, job.batch)) continue;
        const Prediction p = predict(job).value();
        ++considered;
        if (p.memory.total() <= memory) best = std::min(best, p.step.total);
      }
    }
  }
  RC_ASSERT(found.considered == considered);
  RC_ASSERT(found.best.has_value() == std::isfinite(best.count()));
  if (!found.best) return;
  RC_ASSERT(std::abs(found.best->step / best - 1) <= kSumRounding);
}

RC_GTEST_PROP(SearchProperty, MoreMemoryIsNeverWorse, ()) {
  const JobSpec job = any_job();
  const Work work = work_of(job).value();
  const std::int64_t sequences = sequences_per_step(job);
  const base::Bytes memory = any_memory();
  const FastestLayout less = fastest_layout(job, work, sequences, memory, {});
  const FastestLayout more = fastest_layout(job, work, sequences, memory + any_memory(), {});
  RC_ASSERT(less.too_large >= more.too_large);
  if (!less.best) return;
  RC_ASSERT(more.best.has_value());
  RC_ASSERT(more.best->step <= less.best->step);
}

RC_GTEST_PROP(SearchProperty, EveryCandidateIsAValidJobWithTheSameStep, ()) {
  const JobSpec job = any_job();
  const auto found = search(job, machines_of(job), quick_choices());
  RC_ASSERT(found.has_value());
  for (const Candidate& c : found->candidates) {
    JobSpec run = job;
    run.cluster.nodes = c.nodes;
    run.layout = c.choice.layout;
    run.batch = c.choice.batch;
    RC_ASSERT(spec::check_layout(run).has_value());
    RC_ASSERT(run.tokens_per_step() == job.tokens_per_step());
    RC_ASSERT(c.devices == run.cluster.devices());
    const double steps = static_cast<double>(*job.train.steps);
    RC_ASSERT(c.work.count() == steps * c.choice.step.count());
    RC_ASSERT(c.time_p50 >= c.work && c.time_p90 >= c.time_p50);
  }
}

// Rent times time, where all that is rented is paid for all the time.
RC_GTEST_PROP(SearchProperty, CostIsRentTimesTime, ()) {
  const JobSpec job = any_job();
  const auto found = search(job, machines_of(job), quick_choices());
  RC_ASSERT(found.has_value());
  for (const Candidate& c : found->candidates) {
    const double per_hour = c.offer.per_hour.high.units() * static_cast<double>(c.rented);
    const double all_the_time = per_hour * c.time_p50.count() / 3600;
    RC_ASSERT(c.rented * c.offer.devices >= c.devices);
    if (c.policy == SpotPolicy::kOnDemand) {
      RC_ASSERT(std::abs(c.cost() - all_the_time) < 1e-5 + kSumRounding * all_the_time);
    } else {
      RC_ASSERT(c.cost() <= per_hour * c.time_p90.count() / 3600 * 1.01);
    }
  }
}

RC_GTEST_PROP(SearchProperty, TheFrontIsThatOfTheCandidatesWithinLimits, ()) {
  const JobSpec job = any_job();
  SearchChoices choices = quick_choices();
  if (*rc::gen::arbitrary<bool>())
    choices.limits.deadline = Seconds(*rc::gen::inRange(1, 200) * 3600.0);
  if (*rc::gen::arbitrary<bool>()) choices.limits.budget = dollars(*rc::gen::inRange(1, 5000));
  const Found found = search(job, machines_of(job), choices).value();
  std::vector<std::size_t> within;
  std::vector<base::Tradeoff> points;
  for (std::size_t i = 0; i < found.candidates.size(); ++i) {
    const Candidate& c = found.candidates[i];
    const bool keeps =
        (!choices.limits.deadline || c.time_p90 <= *choices.limits.deadline) &&
        (!choices.limits.budget || c.cost_p90.high.micros() <= choices.limits.budget->micros());
    RC_ASSERT(keeps == c.misses.empty());
    if (!keeps) continue;
    within.push_back(i);
    points.push_back({c.time_p50.count(), c.cost()});
  }
  std::vector<std::size_t> front;
  for (const std::size_t i : base::pareto_front(points)) front.push_back(within[i]);
  RC_ASSERT(front == found.front);
  RC_ASSERT(found.recommended.has_value() == !front.empty());
  if (front.empty()) return;
  for (const std::size_t i : within) {
    RC_ASSERT(found.candidates[*found.fastest].time_p50 <= found.candidates[i].time_p50);
    RC_ASSERT(found.candidates[*found.cheapest].cost() <= found.candidates[i].cost());
  }
}

// Of policies that do not look at the deadline, candidate by candidate; and whatever the policy,
// what could be recommended still can.
RC_GTEST_PROP(SearchProperty, WiderLimitsNeverRemoveASolution, ()) {
  const JobSpec job = any_job();
  SearchChoices narrow = quick_choices();
  narrow.limits.deadline = Seconds(*rc::gen::inRange(1, 200) * 3600.0);
  narrow.limits.budget = dollars(*rc::gen::inRange(1, 5000));
  SearchChoices wide = narrow;
  wide.limits.deadline = *narrow.limits.deadline * (1 + *rc::gen::inRange(0, 100) / 50.0);
  wide.limits.budget = dollars(narrow.limits.budget->units() + *rc::gen::inRange(0, 1000));
  const Found few = search(job, machines_of(job), narrow).value();
  const Found many = search(job, machines_of(job), wide).value();
  const auto kept = [](const Found& found) {
    std::set<std::tuple<std::int64_t, std::string, std::string>> keys;
    for (const Candidate& c : found.candidates) {
      if (!c.misses.empty() || c.policy == SpotPolicy::kUniformProgress) continue;
      keys.insert({c.nodes, c.offer.provider, std::string(to_text(c.policy))});
    }
    return keys;
  };
  const auto before = kept(few);
  const auto after = kept(many);
  RC_ASSERT(std::includes(after.begin(), after.end(), before.begin(), before.end()));
  RC_ASSERT(many.recommended.has_value() || !few.recommended.has_value());
}

RC_GTEST_PROP(SearchProperty, TheSameInputHasTheSameResult, ()) {
  const JobSpec job = any_job();
  const Found a = search(job, machines_of(job), quick_choices()).value();
  const Found b = search(job, machines_of(job), quick_choices()).value();
  RC_ASSERT(a.front == b.front && a.recommended == b.recommended);
  RC_ASSERT(a.considered == b.considered && a.candidates.size() == b.candidates.size());
  for (std::size_t i = 0; i < a.candidates.size(); ++i) {
    RC_ASSERT(a.candidates[i].time_p90 == b.candidates[i].time_p90);
    RC_ASSERT(a.candidates[i].cost_p90.high == b.candidates[i].cost_p90.high);
  }
}

// The step as a whole may take less in the model, by a little: what ranks exchange is hidden behind
// a longer backward pass.
RC_GTEST_PROP(SearchProperty, RecomputationComputesMoreAndKeepsLess, ()) {
  JobSpec job = any_job();
  const std::int64_t sequences = sequences_per_step(job);
  const auto layouts = layouts_of(job, sequences).valid;
  job.layout = *rc::gen::elementOf(layouts);
  job.batch.accumulate = sequences / job.layout.data_ranks();
  Work work = work_of(job).value();
  const ModelConstants constants;
  Seconds computed;
  base::Bytes bytes(std::numeric_limits<std::int64_t>::max());
  for (const RecomputeKind kind : recomputations_of(Framework::kAssay)) {
    work.recompute = kind;
    const StepTime t = step_time(work, constants.time);
    const Seconds more = t.products + t.attention + t.passes;
    const base::Bytes less = memory_need(work, constants.memory).total();
    RC_ASSERT(more > computed);
    // As much where little is kept in any case: a stage of one layer has everything of it while it
    // is at work, with zero bubble the last stage has all until it makes the gradients of weights,
    // and the gradients of a large table may need more than few layers do.
    RC_ASSERT(less <= bytes);
    const bool strictly = job.layout.pp == 1 && job.model.layers > 1;
    if (strictly) RC_ASSERT(less < bytes);
    computed = more;
    bytes = less;
  }
}

RC_GTEST_PROP(SearchProperty, PartsOfAPredictionAddUp, ()) {
  const Prediction p = predict(any_job()).value();
  const StepTime& t = p.step;
  const Seconds sum = t.products + t.attention + t.passes + t.head + t.routing + t.tensor +
                      t.context + t.experts + t.shards + t.gradients + t.pipeline + t.host +
                      t.optimizer + t.other;
  RC_ASSERT(std::abs(sum / t.total - 1) <= kSumRounding);
  RC_ASSERT(p.tokens_per_second == p.tokens_per_step / t.total.count());
  RC_ASSERT(p.fits == (p.memory.total() <= p.work.card.memory));
  RC_ASSERT(p.mfu > 0 && p.mfu < 1 && p.mfu < p.mfu_with_embedding);
}

}  // namespace
}  // namespace assay::plan
