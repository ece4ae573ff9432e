#include "plan/search/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/pareto.h"
#include "base/text.h"
#include "plan/cost/money.h"
#include "plan/plan.h"
#include "plan/search/counted_layout.h"
#include "plan/search/offers.h"
#include "plan/trainer_rules.h"

namespace assay::plan {
namespace {

using base::Seconds;

constexpr std::int64_t kEveryCount = 16;

// All small numbers, then 24, 32, 48, 64, …; what the cluster has and can have at most, and what
// the limits ask for.
std::set<std::int64_t> node_counts(const spec::ClusterSpec& cluster, const SearchLimits& limits) {
  const std::int64_t each = cluster.devices_per_node;
  std::set<std::int64_t> counts = {cluster.nodes, cluster.max_nodes, limits.max_devices / each,
                                   (limits.min_devices - 1) / each + 1};
  for (std::int64_t n = 1; n <= std::min(kEveryCount, cluster.max_nodes); ++n) counts.insert(n);
  for (std::int64_t n = 1; n <= cluster.max_nodes; n *= 2) counts.insert({n, n + n / 2});
  std::erase_if(counts, [&](std::int64_t n) {
    const std::int64_t devices = n * each;
    return n < 1 || n > cluster.max_nodes || devices < limits.min_devices ||
           devices > limits.max_devices;
  });
  return counts;
}

double headroom_of(const SearchChoices& choices, Framework framework) {
  // The largest difference of planned and measured memory in our trainer's runs.
  constexpr double kOfOurTrainer = 0.01;
  const double of_others = 1 - 1 / std::max(1.0, choices.memory_intervals.needed.high);
  return choices.limits.memory_headroom.value_or(framework == Framework::kAssay ? kOfOurTrainer
                                                                                : of_others);
}

std::string source_of_headroom(const SearchChoices& choices, Framework framework) {
  if (choices.limits.memory_headroom) return "given";
  if (framework == Framework::kAssay)
    return "planned and measured memory differ by at most 1 % (bench/results/train.md)";
  const ErrorInterval& need = choices.memory_intervals.needed;
  return fmt::format("enough for 9 of 10 measured runs ({} of {}{})",
                     base::counted(need.rows, "run"), base::counted(need.projects, "project"),
                     choices.memory_intervals.needed_of_others ? ", of the shipped constants" : "");
}

// Whole bytes that may be used, so rounded down.
base::Bytes usable_memory(const Card& card, const SearchChoices& choices, Framework framework) {
  const auto all = static_cast<double>(card.memory.count());
  const double used = 1 - headroom_of(choices, framework);
  const base::Bytes usable(static_cast<std::int64_t>(all * used));
  return choices.limits.memory ? std::min(usable, *choices.limits.memory) : usable;
}

// Rounded up, so that a stated budget is enough.
base::Money whole_cents(const base::Money& amount) {
  constexpr std::int64_t kCent = 10'000;
  return {(amount.micros() + kCent - 1) / kCent * kCent, amount.currency(), amount.as_of()};
}

// P90 / P50 of a product of two independent quantities, from P90 / P50 of each.
double joint_spread(double a, double b) {
  return std::exp(std::hypot(std::log(std::max(a, 1.0)), std::log(std::max(b, 1.0))));
}

// Adds the error of predictions to the spread by failures.
base::Result<void> widen(Candidate& c, const ErrorInterval& interval) {
  c.step_low = interval.low * c.choice.step;
  c.step_high = interval.high * c.choice.step;
  c.time_p90 = joint_spread(c.time_p90 / c.time_p50, interval.high) * c.time_p50;
  const auto widened = [&](const base::Money& p50, const base::Money& p90) {
    const double spread = p50.micros() > 0 ? p90.units() / p50.units() : 1;
    return base::scale(p50, joint_spread(spread, interval.high));
  };
  ASSAY_TRY(c.cost_p90.low, widened(c.cost_p50.low, c.cost_p90.low));
  ASSAY_TRY(c.cost_p90.high, widened(c.cost_p50.high, c.cost_p90.high));
  return {};
}

std::string code_of(const base::Currency& currency) {
  return {currency.code.data(), currency.code.size()};
}

double state_bytes_of(const Work& work) {
  constexpr double kWeightBytes = 2;
  return work.shape.parameters * (kWeightBytes + work.software.optimizer_bytes);
}

class Searching {
 public:
  Searching(const spec::JobSpec& job, const SearchChoices& choices, std::int64_t steps)
      : job_(job), choices_(choices), steps_(steps), sequences_(sequences_per_step(job)) {}

  base::Result<void> add(const Machines& machines) {
    const auto counts = node_counts(machines.cluster, choices_.limits);
    most_devices_ =
        std::max(most_devices_, machines.cluster.max_nodes * machines.cluster.devices_per_node);
    largest_memory_ =
        std::max(largest_memory_, machines.cluster.device.memory.value_or(base::Bytes(0)));
    if (counts.empty()) {
      const std::int64_t each = machines.cluster.devices_per_node;
      reject(
          fmt::format("devices: {} comes in multiples of {}, up to {}: none is within the limits",
                      machines.name, each, each * machines.cluster.max_nodes),
          1);
    }
    any_number_ = any_number_ || !counts.empty();
    for (const std::int64_t nodes : counts) ASSAY_TRY_VOID(add(machines, nodes));
    return {};
  }

  base::Result<Found> finish() {
    if (!predictable_ && unpredictable_) return base::fail(*unpredictable_);
    for (bool changed = true; changed;) {
      std::stable_sort(found_.candidates.begin(), found_.candidates.end(),
                       [](const Candidate& a, const Candidate& b) {
                         return std::pair(a.time_p50, a.cost()) < std::pair(b.time_p50, b.cost());
                       });
      for (Candidate& c : found_.candidates) c.misses = missed_limit(c);
      choose();
      ASSAY_TRY(changed, count_listed());
    }
    for (const auto& [reason, count] : reasons_) found_.rejected.push_back({reason, count});
    std::stable_sort(found_.rejected.begin(), found_.rejected.end(),
                     [](const Rejection& a, const Rejection& b) { return a.count > b.count; });
    // Few, and what users can do something about.
    std::stable_partition(found_.rejected.begin(), found_.rejected.end(),
                          [](const Rejection& one) { return one.reason.starts_with("price: "); });
    return std::move(found_);
  }

 private:
  void reject(const std::string& reason, std::int64_t count) { reasons_[reason] += count; }

  // Each kind of machine executes the job with its own figures.
  base::Result<void> add(const Machines& machines, std::int64_t nodes) {
    if (framework_of(job_, choices_.assumed) == Framework::kAssay) {
      if (const auto able = check_device(machines.cluster.device); !able) {
        reject(fmt::format("{}: {}", machines.name, able.error().what), 1);
        if (!unpredictable_) unpredictable_ = able.error();
        return {};
      }
    }
    spec::JobSpec job = job_;
    job.cluster = machines.cluster;
    job.cluster.nodes = nodes;
    auto work = work_of(job, choices_.assumed);
    if (!work) {
      reject(fmt::format("{}: {}", machines.name, work.error().line()), 1);
      if (!unpredictable_) unpredictable_ = work.error();
      return {};
    }
    predictable_ = true;
    const base::Bytes memory = usable_memory(work->card, choices_, work->software.framework);
    FastestLayout fastest = fastest_layout(job, *work, sequences_, memory, choices_.constants);
    found_.considered += fastest.considered;
    for (const Rejection& r : fastest.rejected) reject(r.reason, r.count);
    if (!fastest.best) accept_without_headroom(job, *work, fastest);
    reject_for_memory(machines, nodes, fastest, memory);
    if (!fastest.best) return {};
    const LayoutChoice best = *fastest.best;
    places_.push_back({.machines = &machines,
                       .search = {std::move(job), *std::move(work), sequences_, memory},
                       .fastest = std::move(fastest)});
    ASSAY_TRY(const std::vector<Rejection> impossible, price(places_.size() - 1, best));
    for (const Rejection& r : impossible) reject(r.reason, r.count);
    return {};
  }

  // If nothing fits with headroom, accepts what is predicted to fit without. Only for other
  // software, whose memory is predicted, not counted.
  void accept_without_headroom(const spec::JobSpec& job, const Work& work,
                               FastestLayout& fastest) const {
    if (work.trainer != nullptr || choices_.limits.memory_headroom) return;
    const base::Bytes all = choices_.limits.memory
                                ? std::min(work.card.memory, *choices_.limits.memory)
                                : work.card.memory;
    FastestLayout tight = fastest_layout(job, work, sequences_, all, choices_.constants);
    if (!tight.best) return;
    fastest.best = tight.best;
    fastest.best->tight = true;
    fastest.ranked = {*fastest.best};
  }

  // One kind and number of machines.
  struct Place {
    const Machines* machines = nullptr;
    LayoutSearch search;
    FastestLayout fastest;
    bool counted = false;
    bool fits = true;
  };

  // Adds a candidate for each offer; returns those that are impossible.
  base::Result<std::vector<Rejection>> price(std::size_t at, const LayoutChoice& choice) {
    const Place& place = places_[at];
    const spec::ClusterSpec& cluster = place.search.job.cluster;
    Candidate base{.place = at,
                   .machines = place.machines->name,
                   .nodes = cluster.nodes,
                   .devices = cluster.devices(),
                   .choice = choice,
                   .work = static_cast<double>(steps_) * choice.step};
    const RunOnMachines run{.work = base.work,
                            .step = base.choice.step,
                            .nodes = base.nodes,
                            .devices = base.devices,
                            .state_bytes = state_bytes_of(place.search.work)};
    std::vector<Rejection> impossible;
    ASSAY_TRY(auto candidates,
              candidates_by_offer(base, run, place.machines->offers, choices_, impossible));
    Work work = place.search.work;
    spread(work, choice.layout, choice.batch);
    const ErrorInterval interval = interval_of(work, choices_.intervals, choices_.seen, false,
                                               mfu_of(work, choice.step.count()));
    for (Candidate& c : candidates) {
      ASSAY_TRY_VOID(widen(c, interval));
      keep(std::move(c));
    }
    return impossible;
  }

  // What the answer lists: the front or, if nothing meets the limits, the fastest and cheapest.
  [[nodiscard]] std::set<std::size_t> listed_places() const {
    std::set<std::size_t> places;
    for (const std::size_t i : found_.front) places.insert(found_.candidates[i].place);
    if (!found_.front.empty() || found_.candidates.empty()) return places;
    const auto cheapest =
        std::min_element(found_.candidates.begin(), found_.candidates.end(),
                         [](const auto& a, const auto& b) { return a.cost() < b.cost(); });
    return {found_.candidates.front().place, cheapest->place};
  }

  // Counts the memory of what is listed; returns whether anything had to change.
  base::Result<bool> count_listed() {
    bool changed = false;
    for (const std::size_t at : listed_places()) {
      if (places_[at].counted) continue;
      ASSAY_TRY(const bool other, count(at));
      changed = changed || other;
    }
    return changed;
  }

  base::Result<bool> count(std::size_t at) {
    Place& place = places_[at];
    place.counted = true;
    const LayoutChoice predicted = *place.fastest.best;
    const auto choice = fastest_counted(place.search, std::move(place.fastest), choices_.constants);
    const bool same = choice && to_text(choice->layout) == to_text(predicted.layout) &&
                      choice->batch.micro_batch == predicted.batch.micro_batch &&
                      choice->recompute == predicted.recompute;
    if (same) {
      for (Candidate& c : found_.candidates) {
        if (c.place == at) c.choice = *choice;
      }
      return false;
    }
    std::erase_if(found_.candidates, [&](const Candidate& c) { return c.place == at; });
    if (choice) {
      ASSAY_TRY_VOID(price(at, *choice));
    } else {
      place.fits = false;
      reject(fmt::format("memory: {} x {}: by exact count, nothing fits into the available {}",
                         place.search.job.cluster.nodes, place.machines->name,
                         base::to_text(place.search.memory)),
             1);
    }
    return true;
  }

  void reject_for_memory(const Machines& machines, std::int64_t nodes, const FastestLayout& fastest,
                         base::Bytes memory) {
    if (fastest.too_large == 0) return;
    reject(fastest.best ? fmt::format("memory: more than the {} available on {}",
                                      base::to_text(memory), machines.cluster.device.name)
                        : fmt::format("memory: {} x {}: the smallest needs {}, {} is available",
                                      nodes, machines.name, base::to_text(fastest.least_memory),
                                      base::to_text(memory)),
           fastest.too_large);
  }

  // Amounts in two currencies cannot be compared: no rate is guessed.
  void keep(Candidate candidate) {
    const base::Currency currency = candidate.cost_p50.high.currency();
    if (!currency_) {
      currency_ = choices_.limits.budget ? choices_.limits.budget->currency() : currency;
    }
    if (currency != *currency_) {
      other_currencies_.insert(code_of(currency));
      return reject(fmt::format("price: {} uses another currency, and no exchange rate is assumed",
                                candidate.offer.provider),
                    1);
    }
    found_.candidates.push_back(std::move(candidate));
  }

  [[nodiscard]] std::string missed_limit(const Candidate& c) const {
    const SearchLimits& limits = choices_.limits;
    if (limits.deadline && c.time_p90 > *limits.deadline) {
      return fmt::format("deadline: 90 % of runs need up to {}", base::to_text(c.time_p90));
    }
    if (limits.budget && c.cost_p90.high.micros() > limits.budget->micros()) {
      return fmt::format("budget: 90 % of runs cost up to {}",
                         base::to_text(whole_cents(c.cost_p90.high)));
    }
    return {};
  }

  void choose() {
    found_.front.clear();
    found_.fastest = found_.cheapest = found_.recommended = std::nullopt;
    std::vector<base::Tradeoff> points;
    std::vector<std::size_t> within;
    for (std::size_t i = 0; i < found_.candidates.size(); ++i) {
      const Candidate& c = found_.candidates[i];
      if (!c.misses.empty()) continue;
      within.push_back(i);
      points.push_back({c.time_p50.count(), c.cost()});
    }
    for (const std::size_t i : base::pareto_front(points)) found_.front.push_back(within[i]);
    if (found_.front.empty()) {
      found_.why = why_nothing();
      return;
    }
    found_.fastest = found_.front.front();
    found_.cheapest = found_.front.back();
    recommend();
  }

  [[nodiscard]] std::string limits_of_devices() const {
    const SearchLimits& limits = choices_.limits;
    std::vector<std::string> options;
    if (limits.min_devices > 1)
      options.push_back(fmt::format("--min-devices {}", limits.min_devices));
    if (limits.max_devices < std::numeric_limits<std::int64_t>::max())
      options.push_back(fmt::format("--max-devices {}", limits.max_devices));
    return fmt::format("{}", fmt::join(options, " and "));
  }

  // " within --max-devices 4 and --memory 1.00 GiB": limits without which there would be more room.
  [[nodiscard]] std::string limits_that_leave_less() const {
    const SearchLimits& limits = choices_.limits;
    std::vector<std::string> options;
    if (most_devices_ > limits.max_devices)
      options.push_back(fmt::format("--max-devices {}", limits.max_devices));
    if (limits.memory && largest_memory_ > *limits.memory)
      options.push_back("--memory " + base::to_text(*limits.memory));
    return options.empty() ? "" : fmt::format(" within {}", fmt::join(options, " and "));
  }

  // Where there is no candidate. Also sets `unoffered` where that is the reason.
  std::string why_nothing() {
    found_.others_may_do = true;
    if (!any_number_) return "no number of machines is within " + limits_of_devices();
    if (!found_.candidates.empty()) return "no configuration meets the limits";
    bool fits = false;
    bool offered = false;
    bool connected = false;
    for (const Place& place : places_) {
      if (!place.fits) continue;
      fits = true;
      for (const spec::PriceSpec& offer : place.machines->offers) {
        offered = true;
        connected = connected || is_connected(offer, place.search.job.cluster.devices());
      }
    }
    if (!fits) return "the job does not fit on any of the machines" + limits_that_leave_less();
    found_.others_may_do = false;
    if (!connected) {
      found_.unoffered = offered ? "no offer of that many machines states the network between them"
                                 : "no price is known for the machines that it fits on";
      return "the job fits, but " + found_.unoffered;
    }
    if (!other_currencies_.empty()) {
      return fmt::format(
          "the job fits, but its offers are in {}, not {}, and no exchange rate is assumed",
          fmt::join(other_currencies_, " and "), code_of(*currency_));
    }
    return "the job fits, but no offer can finish it: see what is not possible";
  }

  void recommend() {
    if (choices_.limits.deadline) {
      found_.recommended = found_.cheapest;
      found_.why = "the cheapest that meets the deadline";
      return;
    }
    if (choices_.limits.budget) {
      found_.recommended = found_.fastest;
      found_.why = "the fastest within the budget";
      return;
    }
    const auto product = [&](std::size_t i) {
      return found_.candidates[i].time_p50.count() * found_.candidates[i].cost();
    };
    found_.recommended =
        *std::min_element(found_.front.begin(), found_.front.end(),
                          [&](std::size_t a, std::size_t b) { return product(a) < product(b); });
    found_.why = "lowest time x cost: halving one would at least double the other";
  }

  const spec::JobSpec& job_;
  const SearchChoices& choices_;
  std::int64_t steps_;
  std::int64_t sequences_;
  std::map<std::string, std::int64_t> reasons_;
  std::vector<Place> places_;
  std::optional<base::Currency> currency_;
  bool any_number_ = false;                   // of some machines is within the limits
  bool predictable_ = false;                  // on some machines
  std::int64_t most_devices_ = 0;             // of any machines, without limits
  base::Bytes largest_memory_{0};             // of a device, likewise
  std::set<std::string> other_currencies_;    // of offers that cannot be compared
  std::optional<base::Error> unpredictable_;  // why not on the first that are not
  Found found_;
};

base::Result<void> check_limits(const SearchLimits& limits) {
  if (limits.deadline && !(limits.deadline->count() > 0)) {
    return base::fail(base::usage_error("deadline", "must be greater than 0"));
  }
  if (limits.budget && limits.budget->micros() <= 0) {
    return base::fail(base::usage_error("budget", "must be greater than 0"));
  }
  if (limits.memory_headroom && !(*limits.memory_headroom >= 0 && *limits.memory_headroom < 1)) {
    return base::fail(base::usage_error("memory headroom",
                                        "must be a fraction of the memory, from 0 to less than 1"));
  }
  if (limits.min_devices > limits.max_devices) {
    return base::fail(base::usage_error(
        "devices",
        fmt::format("at least {} and at most {}", limits.min_devices, limits.max_devices)));
  }
  return {};
}

Assumption load_of_experts(const Assumed& assumed, Framework framework) {
  const double imbalance = assumed.imbalance.value_or(usual_imbalance(framework));
  if (!assumed.imbalance && imbalance == 1) {
    return {"imbalance of experts", "that of the measured runs",
            "contained in the constants; --imbalance adds to it"};
  }
  return {"rows of the most loaded expert", fmt::format("{:.4g} times an even share", imbalance),
          assumed.imbalance ? "--imbalance"
                            : "published: 1.04 to 1.22 with a load-balancing loss; --imbalance"};
}

}  // namespace

base::Result<Found> search(const spec::JobSpec& job, const std::vector<Machines>& machines,
                           const SearchChoices& asked) {
  ASSAY_TRY_VOID(check_limits(asked.limits));
  SearchChoices choices = asked;
  if (!choices.assumed.framework) choices.assumed.framework = framework_instead(job);
  const auto steps = spec::training_steps(job);
  if (!steps) {
    return base::fail(
        base::usage_error("train", "the job does not say how long it trains",
                          "set train.steps, train.tokens or train.tokens_per_matmul_parameter"));
  }
  const bool rented = std::any_of(machines.begin(), machines.end(),
                                  [](const Machines& m) { return !m.offers.empty(); });
  if (!rented) {
    return base::fail(
        base::usage_error("price", fmt::format("none is known for '{}'", job.cluster.device.name),
                          "add a [[price]] to the job; its keys: assay presets keys price"));
  }
  Searching searching(job, choices, *steps);
  for (const Machines& m : machines) ASSAY_TRY_VOID(searching.add(m));
  ASSAY_TRY(Found found, searching.finish());
  found.assumptions = listed(choices.risks);
  const Framework framework = framework_of(job, choices.assumed);
  found.assumptions.push_back({"memory left free",
                               fmt::format("{:.0f} %", 100 * headroom_of(choices, framework)),
                               source_of_headroom(choices, framework)});
  const bool tight = std::any_of(found.front.begin(), found.front.end(),
                                 [&](std::size_t i) { return found.candidates[i].choice.tight; });
  if (tight) {
    const ErrorInterval& need = choices.memory_intervals.needed;
    found.assumptions.push_back(
        {"memory left free if nothing else fits", "none",
         fmt::format("may not fit: {:.2f} to {:.2f} times the predicted is needed (80 % interval)",
                     need.low, need.high)});
  }
  if (choices.limits.memory) {
    found.assumptions.push_back(
        {"memory of a device, at most", base::to_text(*choices.limits.memory), "--memory"});
  }
  found.assumptions.push_back({"network between rented machines", "the cluster's",
                               "assumed, for offers with a network (price.network)"});
  if (job.model.is_moe()) {
    found.assumptions.push_back(load_of_experts(choices.assumed, framework));
  }
  return found;
}

}  // namespace assay::plan
