// assay plan JOB --search: which machines, how many, from whom, and how the job is spread.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "assay/plan/job_file.h"
#include "assay/plan/modes.h"
#include "assay/plan/pictures.h"
#include "assay/shared/spec_summary.h"
#include "base/text.h"
#include "cli/number_option.h"
#include "plan/search/search.h"
#include "spec/enum_names.h"
#include "spec/presets.h"

namespace assay::cli {
namespace {

using base::grouped;
using base::Json;
using base::Table;
using plan::Candidate;

constexpr double kHour = 3600;
constexpr base::Bytes kBytesOfGib(std::int64_t{1} << 30);
constexpr std::size_t kReasonsShown = 8;

base::Result<void> count_of(const char* option, const std::string& text, std::int64_t& count) {
  if (text.empty()) return {};
  ASSAY_TRY(count, number_option<std::int64_t>(option, text, 1));
  return {};
}

// "5000", "$40k", "1.5M", "5000 EUR".
base::Result<std::optional<base::Money>> money_of(const char* option, std::string text) {
  if (text.empty()) return std::nullopt;
  if (text.front() == '$') text.erase(0, 1);
  double amount = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double times = rest.empty() ? 1 : rest == "k" ? 1e3 : rest == "M" ? 1e6 : 0;
  if (error == std::errc() && times > 0 && amount > 0 && amount * times < 1e12) {
    text = fmt::format("{:.2f}", amount * times);
  }
  const bool bare = text.find(' ') == std::string::npos;
  auto money = base::parse_money(bare ? text + " USD" : text, {});
  if (!money) {
    money.error().where = option;
    return base::fail(std::move(money).error());
  }
  if (money->micros() <= 0) return base::fail(base::usage_error(option, "must be greater than 0"));
  return *money;
}

base::Result<std::optional<base::Bytes>> memory_of(const char* option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto memory = base::parse_bytes(text);
  if (!memory) {
    memory.error().where = option;
    return base::fail(std::move(memory).error());
  }
  if (memory->count() <= 0) return base::fail(base::usage_error(option, "must be greater than 0"));
  return *memory;
}

base::Result<plan::SearchChoices> choices_of(const PlanOptions& options) {
  plan::SearchChoices choices;
  plan::SearchLimits& limits = choices.limits;
  ASSAY_TRY(limits.deadline, duration_of("--deadline", options.deadline));
  ASSAY_TRY(limits.budget, money_of("--budget", options.budget));
  ASSAY_TRY_VOID(count_of("--min-devices", options.min_devices, limits.min_devices));
  ASSAY_TRY_VOID(count_of("--max-devices", options.max_devices, limits.max_devices));
  if (limits.min_devices > limits.max_devices) {
    return base::fail(base::usage_error("--min-devices", "is more than --max-devices"));
  }
  ASSAY_TRY(choices.assumed, assumed_by(options));
  ASSAY_TRY(const plan::Calibration calibration, calibration_by(options));
  choices.constants = {calibration.constants, calibration.memory};
  choices.intervals = calibration.intervals;
  choices.seen = calibration.seen;
  choices.memory_intervals = calibration.memory_intervals;
  ASSAY_TRY(limits.memory, memory_of("--memory", options.memory));
  return choices;
}

std::string hours(base::Seconds time) {
  const double h = time.count() / kHour;
  return fmt::format("{}", h < 1000 ? fmt::format("{:.3g}", h) : grouped(std::llround(h)));
}

std::string dollars(const base::Money& money) {
  const double amount = money.units();
  return amount < 1000 ? fmt::format("{:.2f}", amount) : grouped(std::llround(amount));
}

std::string range(const spec::PriceRange& cost) {
  if (cost.low == cost.high) return dollars(cost.low);
  return dollars(cost.low) + " - " + dollars(cost.high);
}

struct Searched {
  spec::Loaded loaded;
  plan::Found found;
  std::map<std::string, std::string> gpus;  // by the name of machines: what they have
  bool everywhere = false;                  // else only the job's own cluster was searched
  bool is_priced = true;                    // else money is GPU-hours, and nothing may be billed
  std::string unpriced;                     // why, then

  [[nodiscard]] const spec::JobSpec& job() const { return std::get<spec::JobSpec>(loaded.spec); }
};

std::int64_t gpus_of_machine(const Candidate& one) {
  return one.devices / std::max<std::int64_t>(one.nodes, 1);
}

std::int64_t idle_gpus(const Candidate& one) {
  return std::max<std::int64_t>(one.rented * one.offer.devices - one.devices, 0);
}

std::string gpu_of(const Searched& made, const Candidate& one) {
  const auto found = made.gpus.find(one.machines);
  return found == made.gpus.end() ? one.machines : found->second;
}

// "2 machines of 4 x NVIDIA H200 (8 GPUs)".
std::string machines_text(const Searched& made, const Candidate& one) {
  return fmt::format("{} of {} x {} ({})", base::counted(one.nodes, "machine"),
                     gpus_of_machine(one), gpu_of(made, one), base::counted(one.devices, "GPU"));
}

// What a candidate is, in one line.
std::string layout_of(const Candidate& one) {
  return fmt::format("{}, {} x {}, {}", plan::to_text(one.choice.layout),
                     one.choice.batch.micro_batch, one.choice.batch.accumulate,
                     plan::to_text(one.choice.recompute));
}

void print_front(const Session& session, const Searched& made) {
  const plan::Found& found = made.found;
  std::vector<std::string> titles = {"", "GPUs", "machines", "of", "offer", "hours", "P90"};
  if (made.is_priced) {
    titles.insert(titles.end(), {"cost $", "P90 $"});
  } else {
    titles.emplace_back("GPU-hours");
  }
  titles.emplace_back("layout");
  Table table(titles);
  for (const std::size_t at : found.front) {
    const Candidate& one = found.candidates[at];
    const std::int64_t idle = idle_gpus(one);
    std::vector<std::string> row = {
        found.recommended == at ? ">" : "",
        grouped(one.devices) + (idle > 0 ? fmt::format(" + {} idle", grouped(idle)) : ""),
        grouped(one.nodes),
        fmt::format("{} x {}", gpus_of_machine(one), gpu_of(made, one)),
        made.is_priced ? fmt::format("{} {} {}", one.offer.provider, plan::to_text(one.policy),
                                     base::to_text(one.offer.date))
                       : "no price",
        hours(one.time_p50),
        hours(one.time_p90)};
    if (made.is_priced) {
      row.insert(row.end(), {range(one.cost_p50), range(one.cost_p90)});
    } else {
      row.push_back(range(one.cost_p50));
    }
    row.push_back(layout_of(one));
    table.row(std::move(row));
  }
  session.print(fmt::format(
      "\nPareto front of time and {}, P50 and P90 with failures (micro-batch x accumulation, "
      "recomputation)\n",
      made.is_priced ? "cost" : "GPU-hours"));
  session.print(table);
}

// If no candidate meets the limits: the fastest and the cheapest, and which limits they miss.
void print_misses(const Session& session, const Searched& made) {
  const plan::Found& found = made.found;
  if (found.candidates.empty()) return;
  const auto cheapest =
      std::min_element(found.candidates.begin(), found.candidates.end(),
                       [](const Candidate& a, const Candidate& b) { return a.cost() < b.cost(); });
  Table table({"nearest", "devices", made.is_priced ? "offer" : "GPU-hours", "hours", "misses"});
  table.align(4, base::Align::kLeft);
  const auto add = [&](const char* what, const Candidate& one) {
    table.row({what, grouped(one.devices),
               made.is_priced ? fmt::format("{} {}", one.offer.provider, plan::to_text(one.policy))
                              : range(one.cost_p50),
               hours(one.time_p50), one.misses});
  };
  add("fastest", found.candidates.front());
  add(made.is_priced ? "cheapest" : "fewest GPU-hours", *cheapest);
  session.print(table);
}

// What is paid for although nothing runs on it; empty where all is used.
std::string idle_text(const Candidate& one) {
  const std::int64_t idle = idle_gpus(one);
  if (idle == 0) return {};
  return fmt::format("{} of {} rented GPUs are paid for but idle", grouped(idle),
                     grouped(one.rented * one.offer.devices));
}

// The answer: what to rent, how long it takes, what it costs.
void print_recommended(const Session& session, const Searched& made) {
  const plan::Found& found = made.found;
  if (!found.recommended) {
    session.print("nothing to recommend: " + found.why + "\n");
    print_misses(session, made);
    return;
  }
  const Candidate& one = found.candidates[*found.recommended];
  std::string answer = machines_text(made, one);
  if (made.is_priced) {
    answer += fmt::format(", from {}, {}: {} hours, ${}", one.offer.provider,
                          plan::to_text(one.policy), hours(one.time_p50), range(one.cost_p50));
    if (const std::string idle = idle_text(one); !idle.empty()) answer += "; " + idle;
  } else {
    answer += fmt::format(": {} hours, {} GPU-hours; {}", hours(one.time_p50), range(one.cost_p50),
                          made.unpriced);
  }
  if (one.choice.tight) answer += "; it may not fit";
  session.print(fmt::format("{}\n({})\n\n", answer, found.why));
  Table table({"recommended", ""});
  table.align(1, base::Align::kLeft);
  const bool preset = one.machines != made.job().cluster.device.name;
  table.row({"machines",
             machines_text(made, one) + (preset ? fmt::format(", cluster {}", one.machines) : "")});
  if (made.is_priced) {
    table.row({"offer", fmt::format("{} {}: {} of {}, {} per hour each, {}", one.offer.provider,
                                    one.offer.offer, base::counted(one.rented, "machine"),
                                    base::counted(one.offer.devices, "GPU"),
                                    to_text(one.offer.per_hour), base::to_text(one.offer.date))});
  }
  if (const std::string idle = idle_text(one); !idle.empty()) table.row({"", idle});
  if (made.is_priced && one.offer.devices != gpus_of_machine(one) && idle_gpus(one) == 0) {
    table.row({"", fmt::format("the step time is predicted for {} of {}, as in the cluster",
                               base::counted(one.nodes, "machine"),
                               base::counted(gpus_of_machine(one), "GPU"))});
  }
  if (made.is_priced) table.row({"policy", std::string(plan::to_text(one.policy))});
  table.row({"layout", plan::to_text(one.choice.layout)});
  table.row({"batch", fmt::format("micro-batch {}, {} per step, sequences of {}",
                                  one.choice.batch.micro_batch, one.choice.batch.accumulate,
                                  one.choice.batch.sequence)});
  table.row({"recomputation", std::string(plan::to_text(one.choice.recompute))});
  table.row({"step", fmt::format("{:.4g} s", one.choice.step.count())});
  table.row({"memory", fmt::format("{:.1f} GiB{}", one.choice.memory.total() / kBytesOfGib,
                                   one.choice.tight ? ", which may not fit" : "")});
  table.row({"useful time", base::to_text(one.work)});
  table.row({"checkpoint every", base::to_text(one.interval)});
  table.row({"interruptions", fmt::format("{:.3g} expected", one.interruptions)});
  table.row({"time", fmt::format("{} h, at most {} h for 90 % of runs", hours(one.time_p50),
                                 hours(one.time_p90))});
  if (made.is_priced) {
    table.row({"cost",
               fmt::format("${}, at most ${} for 90 % of runs; without storage and network traffic",
                           range(one.cost_p50), range(one.cost_p90))});
  } else {
    table.row({"GPU-hours", fmt::format("{}, at most {} for 90 % of runs", range(one.cost_p50),
                                        range(one.cost_p90))});
  }
  session.print(table);
}

void print_found(const Session& session, const Searched& made) {
  const plan::Found& found = made.found;
  print_recommended(session, made);
  if (!found.front.empty()) print_front(session, made);
  session.print(fmt::format("\n{} configurations tried, {} {}\n", grouped(found.considered),
                            grouped(static_cast<std::int64_t>(found.candidates.size())),
                            made.is_priced ? "machine offers priced" : "numbers of machines"));
  if (!found.rejected.empty()) {
    Table table({"not possible", "how many"});
    for (std::size_t i = 0; i < std::min(kReasonsShown, found.rejected.size()); ++i) {
      table.row({found.rejected[i].reason, grouped(found.rejected[i].count)});
    }
    session.print("\n");
    session.print(table);
    if (found.rejected.size() > kReasonsShown) {
      session.print(fmt::format("and {} other reasons; --json lists all\n",
                                found.rejected.size() - kReasonsShown));
    }
  }
  Table table({"assumed", "", "source"});
  table.align(2, base::Align::kLeft);
  for (const plan::Assumption& one : found.assumptions)
    table.row({one.what, one.value, one.source});
  session.print("\n");
  session.print(table);
}

Json money_json(const spec::PriceRange& cost) {
  return {{"low", cost.low.units()}, {"high", cost.high.units()}};
}

Json candidate_json(const Searched& made, const Candidate& one) {
  const spec::LayoutSpec& layout = one.choice.layout;
  const auto if_priced = [&](Json value) {
    return made.is_priced ? std::move(value) : Json(nullptr);
  };
  return {{"machines", one.machines},
          {"nodes", one.nodes},
          {"gpu", gpu_of(made, one)},
          {"devices_per_node", gpus_of_machine(one)},
          {"devices", one.devices},
          {"idle_devices", idle_gpus(one)},
          {"provider", if_priced(one.offer.provider)},
          {"offer", if_priced(one.offer.offer)},
          {"offer_devices", if_priced(one.offer.devices)},
          {"price_date", if_priced(base::to_text(one.offer.date))},
          {"rented", one.rented},
          {"policy", plan::to_text(one.policy)},
          {"layout",
           {{"dp", layout.dp},
            {"fsdp", layout.fsdp},
            {"zero", layout.zero},
            {"tp", layout.tp},
            {"sequence_parallel", layout.sequence_parallel},
            {"pp", layout.pp},
            {"pp_schedule", spec::to_text(layout.pp_schedule)},
            {"pp_chunks", layout.pp_chunks},
            {"cp", layout.cp},
            {"ep", layout.ep}}},
          {"layout_text", plan::to_text(layout)},
          {"micro_batch", one.choice.batch.micro_batch},
          {"accumulate", one.choice.batch.accumulate},
          {"recompute", plan::to_text(one.choice.recompute)},
          {"step_s", one.choice.step.count()},
          {"step_low_s", one.step_low.count()},
          {"step_high_s", one.step_high.count()},
          {"memory_gib", one.choice.memory.total() / kBytesOfGib},
          {"work_hours", one.work.count() / kHour},
          {"checkpoint_interval_s", one.interval.count()},
          {"interruptions", one.interruptions},
          {"hours_p50", one.time_p50.count() / kHour},
          {"hours_p90", one.time_p90.count() / kHour},
          {"gpu_hours_p50", one.time_p50.count() / kHour * static_cast<double>(one.devices)},
          {"cost_p50", if_priced(money_json(one.cost_p50))},
          {"cost_p90", if_priced(money_json(one.cost_p90))},
          {"miss_chance", one.miss_chance},
          {"misses", base::or_null(one.misses)}};
}

Json found_json(const Searched& made) {
  const plan::Found& found = made.found;
  const auto candidate = [&](const Candidate& one) { return candidate_json(made, one); };
  const auto at = [&](const std::optional<std::size_t>& index) {
    return index ? candidate(found.candidates[*index]) : Json(nullptr);
  };
  Json front = Json::array();
  for (const std::size_t index : found.front) front.push_back(candidate(found.candidates[index]));
  Json candidates = Json::array();
  for (const Candidate& one : found.candidates) candidates.push_back(candidate(one));
  Json rejected = Json::array();
  for (const plan::Rejection& one : found.rejected) {
    rejected.push_back({{"reason", one.reason}, {"count", one.count}});
  }
  Json assumed = Json::array();
  for (const plan::Assumption& one : found.assumptions) {
    assumed.push_back({{"what", one.what}, {"value", one.value}, {"source", one.source}});
  }
  return {{"name", made.loaded.name},
          {"summary", summary(made.loaded)},
          {"price_known", made.is_priced},
          {"everywhere", made.everywhere},
          {"considered", found.considered},
          {"front", std::move(front)},
          {"fastest", at(found.fastest)},
          {"cheapest", at(found.cheapest)},
          {"recommended", at(found.recommended)},
          {"why", found.why},
          {"candidates", std::move(candidates)},
          {"rejected", std::move(rejected)},
          {"assumptions", std::move(assumed)}};
}

// Each GPU-hour is taken to cost the same, so that the search still finds the fastest layouts and
// how many machines are worth their time. Nothing of it is shown as money.
void take_gpu_hours(std::vector<plan::Machines>& machines) {
  for (plan::Machines& one : machines) {
    const std::int64_t each = one.cluster.devices_per_node;
    constexpr std::int64_t kMicros = 1'000'000;
    const base::Money hour(each * kMicros, base::Currency{}, {});
    one.offers = {{.provider = "no price",
                   .offer = "",
                   .devices = each,
                   .per_hour = {hour, hour},
                   .network = true}};
  }
}

base::Result<Searched> searched(const PlanOptions& options) {
  ASSAY_TRY(const plan::SearchChoices choices, choices_of(options));
  ASSAY_TRY_VOID(check_job_output(options));
  ASSAY_TRY_VOID(check_svg(options));
  ASSAY_TRY(spec::Loaded loaded, load_job(options));
  const auto& job = std::get<spec::JobSpec>(loaded.spec);
  const auto found_by =
      [&](const std::vector<plan::Machines>& machines) -> base::Result<plan::Found> {
    ASSAY_TRY(plan::Found found, plan::search(job, machines, choices));
    if (found.others_may_do && !options.everywhere) {
      found.why += "; this is the job's own cluster, --everywhere searches all cluster presets";
    }
    return found;
  };
  ASSAY_TRY(const spec::PriceList prices, spec::preset_prices());
  ASSAY_TRY(std::vector<plan::Machines> machines,
            plan::machines_for(job, job.cluster.device.name, prices, options.everywhere));
  Searched made{.everywhere = options.everywhere};
  for (const plan::Machines& one : machines) made.gpus[one.name] = one.cluster.device.name;
  // A budget cannot be checked without prices: the search says so.
  const bool offered = std::any_of(machines.begin(), machines.end(),
                                   [](const plan::Machines& one) { return !one.offers.empty(); });
  if (offered || choices.limits.budget) {
    ASSAY_TRY(made.found, found_by(machines));
    if (made.found.unoffered.empty() || choices.limits.budget) {
      made.loaded = std::move(loaded);
      return made;
    }
    made.unpriced = made.found.unoffered;
  } else {
    made.unpriced = fmt::format("no price is known for '{}'", job.cluster.device.name);
  }
  made.is_priced = false;
  take_gpu_hours(machines);
  ASSAY_TRY(made.found, found_by(machines));
  if (made.found.recommended) {
    made.found.why = fmt::format(
        "{}; {}: set one with [[price]]",
        choices.limits.deadline ? "the fewest GPU-hours that meet the deadline"
                                : "lowest time x GPU-hours: halving one would at least double the "
                                  "other",
        made.unpriced);
  }
  made.loaded = std::move(loaded);
  return made;
}

// Where the software takes the place of our trainer, and a plan of the recommended layout would
// take another: the options with its name.
PlanOptions with_software(const PlanOptions& options, const Searched& made) {
  PlanOptions named = options;
  if (!options.framework.empty() || !made.found.recommended) return named;
  spec::JobSpec job = made.job();
  const auto searched = plan::framework_instead(job);
  job.layout = made.found.candidates[*made.found.recommended].choice.layout;
  if (searched && plan::framework_instead(job) != searched) {
    named.framework = plan::to_text(*searched);
  }
  return named;
}

}  // namespace

base::Result<base::Json> search_json(const PlanOptions& options) {
  ASSAY_TRY(const Searched made, searched(options));
  return found_json(made);
}

base::Result<base::ExitCode> plan_search(const Session& session, const PlanOptions& options) {
  ASSAY_TRY(const Searched made, searched(options));
  const plan::Found& found = made.found;
  session.print_json(found_json(made));
  print_found(session, made);
  const PlanOptions named = with_software(options, made);
  if (!options.svg.empty()) {
    ASSAY_TRY_VOID(draw_search(session, made.loaded.name, found, made.is_priced, options.svg));
  }
  if (!options.out.empty()) ASSAY_TRY_VOID(write_job(session, named, made.job(), found));
  if (found.recommended) {
    PlanOptions next = named;
    if (options.out.empty()) {
      for (std::string& setting : settings_of(made.job(), found.candidates[*found.recommended]))
        next.sets.push_back(std::move(setting));
    } else {
      next.job = options.out;
    }
    session.next(fmt::format("{}, for the breakdown", plan_command(next)));
  }
  return found.recommended ? base::ExitCode::kYes : base::ExitCode::kNo;
}

}  // namespace assay::cli
