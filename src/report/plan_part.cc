#include "report/plan_part.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "report/numbers.h"
#include "report/plan_sections.h"
#include "report/plan_values.h"

namespace assay::report {
namespace {

using base::Json;

constexpr std::size_t kMostPlanTitle = 100;  // columns

bool is_known(double value) {
  return std::isfinite(value);
}

// Whether the memory leaves no doubt that the job cannot run; the plan of such a job has no time.
bool cannot_run(const Json& plan) {
  const Json& memory = object_in(plan, "memory_gib");
  return number_in(memory, "card") > 0 && is_known(number_in(memory, "total")) &&
         !flag_in(memory, "fits");
}

// What the offers of a market ask for, in the currency of the first.
Fact cost_of_market(const Json& plan, const std::string& market) {
  const Json& offers = list_in(plan, "cost");
  double low = kUnknown;
  double high = kUnknown;
  std::string least;
  std::string currency;
  for (const Json& offer : offers) {
    const Json& cost = object_in(offer, "cost");
    if (currency.empty()) currency = text_in(cost, "currency");
    if (text_in(offer, "market") != market || text_in(cost, "currency") != currency) continue;
    const double from = number_in(cost, "low");
    const double to = number_in(cost, "high");
    if (!is_known(from) || !is_known(to)) continue;
    if (!(low <= from)) {
      low = from;
      least = text_in(offer, "provider");
      const double idle = number_in(offer, "idle_devices");
      if (idle > 0) least += fmt::format(", {} GPUs idle", figure(idle));
    }
    if (!(high >= to)) high = to;
  }
  if (!is_known(low)) return {};
  const bool spot = market == "spot";
  return {spot ? "cost, spot" : "cost, on demand", cost_text({{"low", low}, {"high", high}}),
          fmt::format("cheapest: {}; without {}", least,
                      spot ? "interruptions, storage and network traffic"
                           : "restarts, storage and network traffic")};
}

Facts facts_of(const Json& plan) {
  Facts facts;
  const auto add = [&](const char* name, std::string value, std::string note) {
    facts.facts.push_back({name, std::move(value), std::move(note)});
  };
  const bool runs = !cannot_run(plan);
  const double step = runs ? number_in(plan, "step_s") : kUnknown;
  const bool given = text_in(plan, "step_source") == "given";
  if (is_known(step)) {
    const double low = number_in(plan, "step_low_s");
    const double high = number_in(plan, "step_high_s");
    add("step", amount(step, "s"),
        given ? "as given"
        : is_known(low) && is_known(high)
            ? fmt::format("80 % interval: {} to {}", amount(low, "s"), amount(high, "s"))
            : "predicted");
  }
  if (const double rate = number_in(plan, "tokens_per_s"); runs && is_known(rate)) {
    const double each = rate / number_in(plan, "ranks");
    add("tokens per second", figure(rate),
        is_known(each) ? fmt::format("{} per device", figure(each)) : "");
  }
  if (const double mfu = number_in(object_in(plan, "mfu"), "current"); runs && is_known(mfu)) {
    add("utilisation (MFU)", amount(mfu, "fraction"), "counting matmul parameters");
  }
  const Json& memory = object_in(plan, "memory_gib");
  if (const double total = number_in(memory, "total"); is_known(total)) {
    const double card = number_in(memory, "card");
    add("memory per rank", figure(total) + " GiB",
        card > 0 ? fmt::format("of {} GiB", figure(card)) : "");
  }
  if (const double hours = number_in(plan, "hours"); runs && is_known(hours)) {
    const double steps = number_in(plan, "steps");
    add("the whole run", fmt::format("{} h", figure(hours)),
        is_known(steps) ? fmt::format("{} steps", figure(steps)) : "");
  }
  if (!runs) return facts;
  for (const char* market : {"on-demand", "spot"}) {
    if (Fact cost = cost_of_market(plan, market); !cost.name.empty())
      facts.facts.push_back(std::move(cost));
  }
  if (const double kg = number_in(object_in(plan, "carbon"), "co2_kg"); is_known(kg)) {
    add("carbon", kg < 1e3 ? figure(kg) + " kg CO2" : figure(kg / 1e3) + " t CO2",
        "of devices and building");
  }
  return facts;
}

Verdict verdict_of_plan(const Json& plan) {
  const Json& memory = object_in(plan, "memory_gib");
  const double total = number_in(memory, "total");
  const double card = number_in(memory, "card");
  const std::string software = text_in(plan, "framework");
  const std::string by = software.empty() ? "" : fmt::format("; run by {}", software);
  if (!is_known(total) || !(card > 0)) return {Rating::kOpen, "memory not known", by};
  const std::string need = fmt::format("{} of {} GiB per rank{}", figure(total), figure(card), by);
  if (text_in(memory, "fit") == "may not fit") {
    return {Rating::kOpen, "may not fit",
            fmt::format("{}, interval {} to {}{}",
                        fmt::format("{} of {} GiB per rank", figure(total), figure(card)),
                        figure(number_in(memory, "total_low")),
                        figure(number_in(memory, "total_high")), by)};
  }
  if (flag_in(memory, "fits")) return {Rating::kGood, "fits", need};
  return {Rating::kBad, "does not fit", need + "; so there is no time or cost"};
}

// What a reader must know before the figures.
std::vector<Block> remarks_of(const Json& plan) {
  std::vector<Block> remarks;
  const auto add_remark = [&](std::string text) { remarks.emplace_back(Note{std::move(text)}); };
  if (const std::string refused = text_in(plan, "refused"); !refused.empty()) {
    add_remark(fmt::format(
        "assay train cannot run this job: {}. The plan below is for software that can.", refused));
  }
  for (const char* key : {"framework_why", "recompute_why", "schedule_why"}) {
    if (const std::string why = text_in(plan, key); !why.empty()) add_remark(why + ".");
  }
  for (const Json& line : list_in(plan, "extrapolations")) {
    if (line.is_string())
      add_remark("Outside the measured range: " + line.get<std::string>() + ".");
  }
  if (const std::string errors = text_in(plan, "known_errors");
      !errors.empty() && is_known(number_in(plan, "step_s"))) {
    add_remark(fmt::format("Errors of predictions: {}.", errors));
  }
  const Json& experts = object_in(plan, "experts");
  const double imbalance = number_in(experts, "imbalance");
  if (imbalance == 1 && flag_in(experts, "is_assumed")) {
    add_remark(fmt::format(
        "Experts are spread over {} ranks. Their imbalance is contained in the measured "
        "runs that the constants come from.",
        figure(number_in(experts, "ranks"))));
  } else if (is_known(imbalance)) {
    add_remark(
        fmt::format("Experts are spread over {} ranks. The most loaded expert has {} times an even "
                    "share{}, so the slowest rank computes and receives {} times as many rows, and "
                    "all wait for it. The memory includes room for the worst case.",
                    figure(number_in(experts, "ranks")), figure(imbalance),
                    flag_in(experts, "is_assumed") ? ", which is assumed" : "",
                    figure(number_in(experts, "fullest_rank"))));
  }
  return remarks;
}

Section unknown_section(const Json& plan) {
  Section section{"Not known"};
  for (const Json& line : list_in(plan, "unknown")) {
    if (line.is_string()) section.blocks.emplace_back(Note{line.get<std::string>()});
  }
  return section;
}

Verdict verdict_of_search(const Json& search) {
  if (object_in(search, "recommended").empty()) {
    return {Rating::kBad, "nothing to recommend", text_in(search, "why")};
  }
  return {Rating::kGood, "recommended", recommended_text(search)};
}

}  // namespace

bool is_plan_of_job(const Json& json) {
  return json.is_object() && json.contains("tokens_per_step") && json.contains("memory_bytes");
}

bool is_search_of_job(const Json& json) {
  return json.is_object() && json.contains("considered") && json.contains("front");
}

base::Result<PagePart> plan_part(PlanDocuments documents, const std::string& where,
                                 bool every_candidate) {
  const Json& plan = documents.plan;
  const Json& search = documents.search;
  const bool planned = is_plan_of_job(plan);
  const bool searched = is_search_of_job(search);
  if (!planned && !searched) {
    return base::fail(base::usage_error(where, "is not a plan",
                                        "write one with assay plan JOB --json, or name the job"));
  }
  const std::string name = text_in(planned ? plan : search, "name");
  const std::string summary = text_in(planned ? plan : search, "summary");
  PagePart part{
      .kind = "plan",
      .title = base::shortened_middle(base::printable(name.empty() ? where : name), kMostPlanTitle),
      .subtitle = base::printable(summary),
      .verdict = planned ? verdict_of_plan(plan) : verdict_of_search(search)};
  if (planned) {
    Section summed{"Summary", {facts_of(plan)}};
    for (Block& remark : remarks_of(plan)) summed.blocks.push_back(std::move(remark));
    add_section(part, std::move(summed));
    if (!cannot_run(plan)) add_section(part, breakdown_section(plan));
    add_section(part, memory_section(plan));
    add_section(part, scaling_section(plan));
  }
  if (searched) {
    for (Section& section : search_sections(search)) add_section(part, std::move(section));
  } else if (!documents.not_searched.empty()) {
    add_section(part, {"Machines and offers", {Note{documents.not_searched}}});
  }
  if (planned) {
    if (!cannot_run(plan)) add_section(part, offers_section(plan));
    add_section(part, exchange_section(plan));
    add_section(part, unknown_section(plan));
  }
  if (searched && !every_candidate) documents.search.erase("candidates");
  part.data = {{"plan", std::move(documents.plan)}, {"search", std::move(documents.search)}};
  return part;
}

}  // namespace assay::report
