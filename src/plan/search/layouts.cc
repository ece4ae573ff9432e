#include "plan/search/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/software_layouts.h"
#include "plan/trainer_rules.h"
#include "plan/work_of_job.h"
#include "spec/rules.h"

namespace assay::plan {
namespace {

using spec::JobSpec;
using spec::LayoutSpec;
using spec::PipelineSchedule;

// In how many ways `number` is a product of `degrees` degrees, in order: the power of each prime is
// divided among the degrees independently.
std::int64_t ways_to_spread(std::int64_t number, std::int64_t degrees) {
  if (degrees <= 0) return number == 1 ? 1 : 0;
  std::int64_t ways = 1;
  const auto place = [&](std::int64_t power) {
    std::int64_t choose = 1;
    for (std::int64_t i = 1; i <= power; ++i) choose = choose * (degrees - 1 + i) / i;
    ways *= choose;
  };
  for (std::int64_t prime = 2; prime * prime <= number; ++prime) {
    std::int64_t power = 0;
    for (; number % prime == 0; number /= prime) ++power;
    place(power);
  }
  place(number > 1 ? 1 : 0);
  return ways;
}

class Enumeration {
 public:
  Enumeration(const JobSpec& job, std::int64_t sequences, Framework framework)
      : asked_(job),
        trainer_(job, framework),
        framework_(framework),
        sequences_(sequences),
        moe_(job.model.is_moe()) {
    asked_.layout = LayoutSpec{};
    asked_.prices.clear();
  }

  Layouts run() {
    const std::int64_t devices = asked_.cluster.devices();
    for (const std::int64_t tp : divisors_of(devices)) {
      if (!can_cut(tp, devices / tp, moe_ ? 5 : 4, &LayoutSpec::tp)) continue;
      tp_ = tp;
      stages(devices / tp);
    }
    std::stable_sort(found_.rejected.begin(), found_.rejected.end(),
                     [](const Rejection& a, const Rejection& b) { return a.count > b.count; });
    return std::move(found_);
  }

 private:
  void reject(const std::string& reason, std::int64_t count) {
    if (count == 0) return;
    for (Rejection& known : found_.rejected) {
      if (known.reason != reason) continue;
      known.count += count;
      return;
    }
    found_.rejected.push_back({reason, count});
  }

  // Why this degree alone is impossible, by spec's rules or the software's; empty when it is not.
  std::string broken_by(std::int64_t LayoutSpec::*degree, std::int64_t value) {
    asked_.layout = LayoutSpec{};
    asked_.layout.*degree = value;
    if (const auto checked = spec::check_layout(asked_); !checked) return checked.error().what;
    if (std::string missing = missing_in(framework_, asked_.layout); !missing.empty())
      return missing;
    return trainer_.accept(asked_.layout) ? std::string() : trainer_.reason(asked_.layout);
  }

  // `left` devices are for the `others` degrees that come after this one.
  bool can_cut(std::int64_t value, std::int64_t left, std::int64_t others,
               std::int64_t LayoutSpec::*degree) {
    const std::int64_t per_node = asked_.cluster.devices_per_node;
    std::string reason = broken_by(degree, value);
    if (reason.empty() && degree == &LayoutSpec::tp && per_node % value != 0) {
      reason =
          fmt::format("layout.tp: groups of tp {} would span nodes of {} devices", value, per_node);
    }
    if (reason.empty()) return true;
    reject(reason, ways_to_spread(left, others));
    return false;
  }

  void stages(std::int64_t devices) {
    for (const std::int64_t pp : divisors_of(devices)) {
      if (!can_cut(pp, devices / pp, moe_ ? 4 : 3, &LayoutSpec::pp)) continue;
      pp_ = pp;
      contexts(devices / pp);
    }
  }

  void contexts(std::int64_t devices) {
    for (const std::int64_t cp : divisors_of(devices)) {
      const std::int64_t data_ranks = devices / cp;
      if (!can_cut(cp, data_ranks, moe_ ? 3 : 2, &LayoutSpec::cp)) continue;
      if (sequences_ % data_ranks != 0) {
        reject(fmt::format("batch: {} sequences per step are not divisible by {} data ranks",
                           sequences_, data_ranks),
               ways_to_spread(data_ranks, moe_ ? 3 : 2));
        continue;
      }
      cp_ = cp;
      experts(data_ranks);
    }
  }

  void experts(std::int64_t data_ranks) {
    if (!moe_) return shards(1, data_ranks);
    for (const std::int64_t ep : divisors_of(data_ranks)) {
      if (can_cut(ep, data_ranks / ep, 2, &LayoutSpec::ep)) shards(ep, data_ranks / ep);
    }
  }

  void shards(std::int64_t ep, std::int64_t ranks) {
    for (const std::int64_t fsdp : divisors_of(ranks)) {
      LayoutSpec layout;
      layout.ranks = asked_.cluster.devices();
      layout.dp = ranks / fsdp;
      layout.fsdp = fsdp;
      layout.tp = tp_;
      layout.pp = pp_;
      layout.cp = cp_;
      layout.ep = ep;
      // Ranks with different experts divide the rest of the state, where our trainer runs them.
      const bool divides = fsdp > 1 || (ep > 1 && trainer_.apply());
      for (layout.zero = divides ? 1 : 3; layout.zero <= 3; ++layout.zero) schedules(layout);
    }
  }

  void schedules(LayoutSpec layout) {
    sequence_parallel(layout);
    if (layout.pp == 1) return;
    layout.pp_schedule = PipelineSchedule::kZbH1;
    if (has_zero_bubble(framework_)) sequence_parallel(layout);
    // Chunks that are not equally long are hardly ever better than fewer that are.
    if (!has_interleaving(framework_) || asked_.model.layers % layout.pp != 0) return;
    layout.pp_schedule = PipelineSchedule::kInterleaved;
    for (const std::int64_t chunks : divisors_of(asked_.model.layers / layout.pp)) {
      layout.pp_chunks = chunks;
      if (chunks > 1) sequence_parallel(layout);
    }
  }

  void sequence_parallel(LayoutSpec layout) {
    if (!trainer_.accept(layout)) return;  // zero 3, for Muon; each degree by itself is possible
    found_.valid.push_back(layout);
    layout.sequence_parallel = true;
    if (layout.tp > 1 && asked_.batch.sequence % (layout.tp * layout.cp) == 0) {
      found_.valid.push_back(layout);
    }
  }

  JobSpec asked_;
  TrainerRules trainer_;
  Framework framework_;
  std::int64_t sequences_;
  bool moe_;
  std::int64_t tp_ = 1;
  std::int64_t pp_ = 1;
  std::int64_t cp_ = 1;
  Layouts found_;
};

double doublings(std::int64_t from, std::int64_t to) {
  return std::abs(std::log2(static_cast<double>(to) / static_cast<double>(from)));
}

double change(const LayoutSpec& from, const LayoutSpec& to) {
  double sum = from.dp == 0 ? 0 : doublings(from.dp, to.dp) / 2;
  for (const auto degree : {&LayoutSpec::fsdp, &LayoutSpec::tp, &LayoutSpec::pp, &LayoutSpec::cp,
                            &LayoutSpec::ep, &LayoutSpec::pp_chunks}) {
    sum += doublings(from.*degree, to.*degree);
  }
  // Between layouts of the same degrees.
  constexpr double kSwitch = 0.01;
  if (to.fsdp * to.ep > 1 && from.zero != to.zero) sum += kSwitch;
  if (from.sequence_parallel != to.sequence_parallel) sum += kSwitch;
  const auto defers = [](const LayoutSpec& l) { return l.pp_schedule == PipelineSchedule::kZbH1; };
  if (defers(from) != defers(to)) sum += kSwitch;
  return sum;
}

// Adds what the job asks for beside the degrees, where these allow it: the schedule, with as many
// chunks as possible, and the unit that is gathered at once.
LayoutSpec with_schedule_and_unit(const JobSpec& job, LayoutSpec to, const TrainerRules& trainer) {
  const LayoutSpec& asked = job.layout;
  JobSpec tried = job;
  const auto take = [&](const LayoutSpec& with) {
    tried.layout = with;
    const bool possible = spec::check_layout(tried) && spec::fills_pipeline(with, job.batch) &&
                          (!trainer.accept(to, job.batch) || trainer.accept(with, job.batch));
    if (possible) to = with;
    return possible;
  };
  if (to.zero == 3 && to.fsdp * to.ep > 1) {
    LayoutSpec with = to;
    with.unit = asked.unit;
    take(with);
  }
  if (to.pp == 1) return to;
  for (std::int64_t chunks = asked.pp_chunks; chunks > 0; --chunks) {
    LayoutSpec with = to;
    with.pp_schedule = asked.pp_schedule;
    with.pp_chunks = chunks;
    if (take(with)) break;
  }
  return to;
}

}  // namespace

Layouts layouts_of(const JobSpec& job, std::int64_t sequences, Framework framework) {
  return Enumeration(job, sequences, framework).run();
}

std::int64_t sequences_per_step(const JobSpec& job) {
  return job.batch.micro_batch * job.batch.accumulate * job.layout.data_ranks();
}

std::vector<std::int64_t> divisors_of(std::int64_t number) {
  std::vector<std::int64_t> low;
  std::vector<std::int64_t> high;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(d);
    if (d * d != number) high.push_back(number / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

std::optional<Nearest> nearest_valid(const JobSpec& job) {
  const auto checked = spec::check_layout(job);
  if (checked) return std::nullopt;
  const Framework framework = framework_of(job, {});
  const TrainerRules trainer(job, framework);
  const Layouts all = layouts_of(job, 0, framework);
  const auto distance = [&](const LayoutSpec& to) {
    return std::pair(!trainer.accept(to, job.batch), change(job.layout, to));
  };
  const auto nearest =
      std::min_element(all.valid.begin(), all.valid.end(),
                       [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  // One is always valid: replicas alone.
  return Nearest{checked.error().what, with_schedule_and_unit(job, *nearest, trainer)};
}

std::string to_text(const LayoutSpec& l) {
  std::string text;
  const auto add = [&](const char* name, std::int64_t degree, const std::string& with = {}) {
    if (degree > 1) text += fmt::format("{}{} {}{}", text.empty() ? "" : " x ", name, degree, with);
  };
  add("dp", l.dp);
  add("fsdp", l.fsdp, l.zero < 3 ? fmt::format(" zero {}", l.zero) : "");
  add("tp", l.tp, l.sequence_parallel ? " sp" : "");
  std::string schedule = l.pp_schedule == PipelineSchedule::kZbH1 ? " zb-h1" : "";
  if (l.pp_chunks > 1) schedule = fmt::format(" of {} chunks", l.pp_chunks);
  add("pp", l.pp, schedule);
  add("cp", l.cp);
  add("ep", l.ep, l.fsdp == 1 && l.zero < 3 ? fmt::format(" zero {}", l.zero) : "");
  return text.empty() ? "one rank" : text;
}

}  // namespace assay::plan
