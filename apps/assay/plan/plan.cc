// assay plan: the options of the verb, and which of its four modes they select.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "assay/plan/modes.h"
#include "assay/verbs.h"
#include "plan/model/software.h"
#include "spec/presets.h"
#include "spec/schema.h"

namespace assay::cli {
namespace {

base::Result<base::ExitCode> only_one(const char* problem) {
  return base::fail(
      base::usage_error("plan", problem, "give a JOB, or --rows FILE, or --calibrate FILE"));
}

// Options that would be ignored in the selected mode are refused.
base::Result<void> refuse(const char* what, const char* needed,
                          std::initializer_list<std::pair<const char*, bool>> options) {
  for (const auto& [name, given] : options) {
    if (given) {
      return base::fail(base::usage_error(name, fmt::format("does not apply to {}", what),
                                          fmt::format("use it with {}", needed)));
    }
  }
  return {};
}

base::Result<void> check_options(const PlanOptions& w) {
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
                           {"--imbalance", !w.imbalance.empty()},
                           {"--search", w.search},
                           {"--svg", !w.svg.empty() && w.rows.empty()},
                           {"--step-time", !w.step_time.empty()},
                           {"--watts", !w.watts.empty()},
                           {"--pue", !w.pue.empty()},
                           {"--grid", !w.grid.empty()}}));
  }
  if (w.calibrate.empty() && !w.search && !w.out.empty()) {
    ASSAY_TRY_VOID(refuse("a plan", "--calibrate or --search", {{"--output", true}}));
  }
  return {};
}

base::Result<base::ExitCode> make_plan(const Session& session, PlanOptions options) {
  // Several tables behind one --calibrate: the second stands where a JOB would.
  if (!options.calibrate.empty() && options.job.ends_with(".csv")) {
    options.calibrate.push_back(std::exchange(options.job, {}));
  }
  const bool job = !options.job.empty();
  const bool rows = !options.rows.empty();
  const bool calibrate = !options.calibrate.empty();
  if (!job && !rows && !calibrate) return only_one("no job given");
  if (rows && (job || calibrate)) return only_one("takes only one of JOB, --rows and --calibrate");
  ASSAY_TRY_VOID(check_options(options));
  if (rows) return plan_rows(session, options);
  if (calibrate) return plan_calibrate(session, options);
  return options.search ? plan_search(session, options) : plan_job(session, options);
}

}  // namespace

Verb plan_verb(const Session& session) {
  const auto options = std::make_shared<PlanOptions>();
  return {
      .name = "plan",
      .description = "predict the time, memory, communication and cost of a job",
      .examples = {"assay plan nanochat-d26-h100",
                   "assay plan nanochat-d26-h100 --step-time 0.7019",
                   "assay plan llama3-70b-h200x32 --search --deadline 30d",
                   "assay plan llama3-13b-h200x32 --set layout.tp=2 --set layout.fsdp=16 --json"},
      .arguments = {{"JOB", "a preset or a job file", &options->job, false,
                     [] { return spec::preset_names(spec::Kind::kJob); }, true}},
      .options =
          {{"--set", "override a key of the job; repeatable", &options->sets, spec::override_keys},
           {"--framework",
            fmt::format("software that runs the job: {}; default: assay if assay train can run it, "
                        "nanochat for its models",
                        fmt::join(plan::framework_names(), ", ")),
            &options->framework, plan::framework_names, "NAME"},
           {"--imbalance",
            "mixture of experts: largest / mean rows per expert; default: 1.2 with assay train",
            &options->imbalance,
            {},
            "N"},
           {"--constants",
            "constants file written by --calibrate",
            &options->constants,
            {},
            "FILE",
            true},
           {"--svg", "write charts to this folder", &options->svg, {}, "DIR", true},
           {"--step-time",
            "step time to use for time and cost: 0.7, 701.9ms",
            &options->step_time,
            {},
            "SECONDS"},
           {"--watts", "power of a device; default: its power limit", &options->watts, {}, "WATTS"},
           {"--pue",
            "power usage effectiveness (PUE) of the building; default: 1.56",
            &options->pue,
            {},
            "N"},
           {"--grid",
            "carbon intensity of the grid, grams of CO2 per kWh; default: 473",
            &options->grid,
            {},
            "GRAMS"},
           {"--search", "find the best layouts, machines and offers for the job", &options->search},
           {"--everywhere", "search all cluster presets, not only the job's", &options->everywhere},
           {"--deadline",
            "time limit that 90 % of runs must meet: 48h, 30d",
            &options->deadline,
            {},
            "TIME"},
           {"--budget",
            "cost limit that 90 % of runs must meet: 5000",
            &options->budget,
            {},
            "DOLLARS"},
           {"--min-devices", "fewest devices to search", &options->min_devices, {}, "N"},
           {"--max-devices", "most devices to search", &options->max_devices, {}, "N"},
           {"--memory",
            "device memory available to the search: 40GiB",
            &options->memory,
            {},
            "BYTES"},
           {"--rows",
            "predict the measured steps in a CSV table; prints CSV",
            &options->rows,
            {},
            "FILE",
            true},
           {"--calibrate",
            "fit the model's constants to CSV tables or, with a JOB, to its metrics.jsonl",
            &options->calibrate,
            {},
            "FILE",
            true},
           {"-o,--output",
            "file for the constants of --calibrate, or for the job that --search recommends",
            &options->out,
            {},
            "FILE",
            true}},
      .action = [&session, options] { return make_plan(session, *options); }};
}

}  // namespace assay::cli
