// assay plan: what a job will exchange, take and cost, before anything is rented.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "assay/plan/options.h"
#include "assay/presets/spec_words.h"
#include "assay/verbs.h"
#include "plan/model/software.h"

namespace assay::cli {
namespace {

base::Result<base::ExitCode> only_one(const char* problem) {
  return base::fail(
      base::usage_error("plan", problem, "give a JOB, or --rows FILE, or --calibrate FILE"));
}

// Options that ask about something else than was asked for would be ignored: they are refused.
base::Result<void> refuse(const char* what, const char* needed,
                          std::initializer_list<std::pair<const char*, bool>> options) {
  for (const auto& [name, given] : options) {
    if (given) {
      return base::fail(base::usage_error(name, fmt::format("says nothing about {}", what),
                                          fmt::format("it belongs to {}", needed)));
    }
  }
  return {};
}

base::Result<void> check_words(const PlanWords& w) {
  const bool limited =
      !(w.deadline + w.budget + w.min_devices + w.max_devices + w.memory).empty() || w.everywhere;
  if (!w.search && limited) {
    ASSAY_TRY_VOID(refuse("one plan", "--search",
                          {{"--deadline", !w.deadline.empty()},
                           {"--budget", !w.budget.empty()},
                           {"--min-devices", !w.min_devices.empty()},
                           {"--max-devices", !w.max_devices.empty()},
                           {"--memory", !w.memory.empty()},
                           {"--everywhere", w.everywhere}}));
  }
  if (w.search) {
    ASSAY_TRY_VOID(refuse("a search", "the plan of one job",
                          {{"--step-time", !w.step_time.empty()},
                           {"--watts", !w.watts.empty()},
                           {"--pue", !w.pue.empty()},
                           {"--grid", !w.grid.empty()}}));
  }
  if (w.job.empty()) {
    ASSAY_TRY_VOID(refuse("rows", "a JOB",
                          {{"--set", !w.sets.empty()},
                           {"--framework", !w.framework.empty()},
                           {"--search", w.search},
                           {"--svg", !w.svg.empty()},
                           {"--step-time", !w.step_time.empty()},
                           {"--watts", !w.watts.empty()},
                           {"--pue", !w.pue.empty()},
                           {"--grid", !w.grid.empty()}}));
  }
  if (w.calibrate.empty() && !w.out.empty()) {
    ASSAY_TRY_VOID(refuse("a plan", "--calibrate", {{"--output", true}}));
  }
  return {};
}

base::Result<base::ExitCode> make_plan(const Session& session, PlanWords words) {
  // Several tables behind one --calibrate: the second stands where a JOB would.
  if (!words.calibrate.empty() && words.job.ends_with(".csv")) {
    words.calibrate.push_back(std::exchange(words.job, {}));
  }
  const bool job = !words.job.empty();
  const bool rows = !words.rows.empty();
  const bool calibrate = !words.calibrate.empty();
  if (!job && !rows && !calibrate) return only_one("nothing to plan");
  if (rows && (job || calibrate)) return only_one("is asked about several things at once");
  ASSAY_TRY_VOID(check_words(words));
  if (rows) return plan_rows(session, words);
  if (calibrate) return plan_calibrate(session, words);
  return words.search ? plan_search(session, words) : plan_job(session, words);
}

}  // namespace

Verb plan_verb(const Session& session) {
  const auto words = std::make_shared<PlanWords>();
  return {
      .name = "plan",
      .description = "what a job will exchange, take and cost, before it runs",
      .examples = {"assay plan nanochat-d26-h100",
                   "assay plan nanochat-d26-h100 --step-time 0.7019",
                   "assay plan llama3-70b-h200x32 --search --deadline 30d",
                   "assay plan llama3-13b-h200x32 --set layout.tp=2 --set layout.fsdp=16 --json"},
      .arguments = {{"JOB", "a preset or a job file", &words->job, false, job_presets, true}},
      .options =
          {{"--set", "written over the job; repeatable", &words->sets, override_keys},
           {"--framework", "that runs it; default: assay, or nanochat for its models",
            &words->framework, plan::framework_names, "NAME"},
           {"--constants",
            "of the model, as --calibrate wrote them",
            &words->constants,
            {},
            "FILE",
            true},
           {"--svg", "write pictures into this folder", &words->svg, {}, "DIR", true},
           {"--step-time",
            "use this for time and cost: 0.7, 701.9ms",
            &words->step_time,
            {},
            "SECONDS"},
           {"--watts", "a device draws; default: its power limit", &words->watts, {}, "WATTS"},
           {"--pue",
            "the building's power over the machines'; default: 1.56",
            &words->pue,
            {},
            "N"},
           {"--grid", "grams of CO2 per kWh; default: 473", &words->grid, {}, "GRAMS"},
           {"--search", "the best layouts, machines and offers for the job", &words->search},
           {"--everywhere", "search all cluster presets, not the job's alone", &words->everywhere},
           {"--deadline",
            "that nine runs of ten must keep: 48h, 30d",
            &words->deadline,
            {},
            "TIME"},
           {"--budget", "that nine runs of ten must keep: 5000", &words->budget, {}, "DOLLARS"},
           {"--min-devices", "of a search", &words->min_devices, {}, "N"},
           {"--max-devices", "of a search", &words->max_devices, {}, "N"},
           {"--rows",
            "predict measured steps of a CSV table; writes CSV",
            &words->rows,
            {},
            "FILE",
            true},
           {"--calibrate",
            "fit the model's constants to CSV tables or, with a JOB, to its metrics.jsonl",
            &words->calibrate,
            {},
            "FILE",
            true},
           {"-o,--output",
            "where --calibrate writes; default: standard output",
            &words->out,
            {},
            "FILE",
            true}},
      .action = [&session, words] { return make_plan(session, *words); }};
}

}  // namespace assay::cli
