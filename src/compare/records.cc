#include "compare/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay::compare {
namespace {

using base::Json;

std::optional<double> optional_from(const Json& json, const char* key) {
  return json.contains(key) && !json.at(key).is_null() ? std::optional(json.at(key).get<double>())
                                                       : std::nullopt;
}

ArmRun run_from_json(const Json& json) {
  ArmRun run{.run = json.at("run"),
             .block = json.at("block"),
             .arm = json.at("arm"),
             .started = json.at("started"),
             .wall_s = json.at("wall_s"),
             .cpu_s = json.at("cpu_s"),
             .value = json.at("value"),
             .quality = optional_from(json, "quality"),
             .startup_s = optional_from(json, "startup_s"),
             .after_s = optional_from(json, "after_s")};
  if (json.contains("steps")) {
    for (const Json& step : json.at("steps")) {
      run.steps.push_back({step.at(0).get<std::int64_t>(), step.at(1).get<double>(), 0});
    }
  }
  return run;
}

SessionRecord session_from_json(const Json& json) {
  return {.begun = json.at("begun"),
          .host = json.at("host"),
          .machine = json.at("machine"),
          .kernel = json.at("kernel"),
          .driver = json.at("driver"),
          .assay = json.at("assay"),
          .project = json.at("project"),
          .preflight = json.at("preflight")};
}

InterimAnalysis analysis_from_json(const Json& json) {
  return {.run = json.at("run"),
          .pairs = json.at("pairs"),
          .stop = stop_reason_from_text(json.at("stopped").get<std::string>()),
          .planned = json.at("planned"),
          .alpha_share = json.at(json.contains("share") ? "share" : "alpha_share")};
}

RuleChange change_from_json(const Json& json, const Experiment& before) {
  const Rules from{before.stop, before.judgement};
  return {.pairs = json.at("pairs"),
          .from = from,
          .to = {{.half_width_pct = json.at("half_width_pct"),
                  .min_pairs = json.at("min_pairs"),
                  .max_pairs = json.at("max_pairs"),
                  .max_time = base::Seconds(json.at("max_time_s").get<double>())},
                 {json.at("margin_pct"), json.at("more_is_better"), json.value("judged", true)}}};
}

base::Result<void> add_run(const Json& line, Measured& measured) {
  ArmRun run = run_from_json(line);
  if (run.arm >= measured.experiment.runs_per_block() || !(run.value > 0) || run.block < 0) {
    return base::fail(base::unfit_error("", "has a run that does not fit the experiment"));
  }
  measured.runs.push_back(std::move(run));
  return {};
}

base::Result<void> add_failure(const Json& line, Measured& measured) {
  FailedRun run{line.at("run"), line.at("block"), line.at("arm"), line.at("started"),
                line.at("what")};
  if (run.arm >= measured.experiment.runs_per_block()) {
    return base::fail(base::unfit_error("", "has a run that does not fit the experiment"));
  }
  measured.failures.push_back(std::move(run));
  return {};
}

base::Result<void> add_change(const Json& line, Measured& measured) {
  RuleChange change = change_from_json(line, measured.experiment);
  measured.experiment.stop = change.to.stop;
  measured.experiment.judgement = change.to.judgement;
  measured.changes.push_back(change);
  return check(measured.experiment);
}

}  // namespace

std::string where_failed(const Experiment& experiment, std::int64_t run, std::size_t arm) {
  return fmt::format("run {}, arm {}", run, experiment.name_of(arm));
}

std::string failure_text(const Experiment& experiment, const FailedRun& failure) {
  return fmt::format("{}: {}", where_failed(experiment, failure.run, failure.arm), failure.what);
}

const FailedRun* Measured::last_failure() const {
  return !failures.empty() && failures.back().run > last_run() ? &failures.back() : nullptr;
}

bool Measured::may_succeed_when_resumed() const {
  const FailedRun* const failure = last_failure();
  if (failure == nullptr) return false;
  // The second baseline has the command of the first.
  const Arm& arm = experiment.arm_of(failure->arm);
  return std::any_of(runs.begin(), runs.end(),
                     [&](const ArmRun& run) { return &experiment.arm_of(run.arm) == &arm; });
}

std::int64_t Measured::next_block() const {
  return runs.empty() ? 0 : runs.back().block + 1;
}

std::int64_t Measured::next_run() const {
  return std::max(last_run(), failures.empty() ? 0 : failures.back().run) + 1;
}

Json to_json(const ArmRun& run) {
  Json json = {{"run", run.run},         {"block", run.block},   {"arm", run.arm},
               {"started", run.started}, {"wall_s", run.wall_s}, {"cpu_s", run.cpu_s},
               {"value", run.value}};
  if (run.quality) json["quality"] = *run.quality;
  if (!run.steps.empty()) {
    Json steps = Json::array();
    for (const StepValue& step : run.steps) steps.push_back({step.step, step.value});
    json["steps"] = std::move(steps);
    json["startup_s"] = base::or_null(run.startup_s);
    json["after_s"] = base::or_null(run.after_s);
  }
  return json;
}

Json to_json(const FailedRun& run) {
  return {{"run", run.run},
          {"block", run.block},
          {"arm", run.arm},
          {"started", run.started},
          {"what", run.what}};
}

Json to_json(const HostMark& mark) {
  return {{"host", mark.what}, {"first_block", mark.first_block}, {"last_block", mark.last_block}};
}

Json to_json(const SessionRecord& session) {
  return {{"begun", session.begun},     {"host", session.host},
          {"machine", session.machine}, {"kernel", session.kernel},
          {"driver", session.driver},   {"assay", session.assay},
          {"project", session.project}, {"preflight", session.preflight}};
}

Json to_json(const Rules& rules) {
  return {{"half_width_pct", rules.stop.half_width_pct},
          {"min_pairs", rules.stop.min_pairs},
          {"max_pairs", rules.stop.max_pairs},
          {"max_time_s", rules.stop.max_time.count()},
          {"margin_pct", rules.judgement.margin_pct},
          {"more_is_better", rules.judgement.more_is_better},
          {"judged", rules.judgement.judged}};
}

Json to_json(const RuleChange& change) {
  Json json = {{"pairs", change.pairs}};
  json.update(to_json(change.to));
  return json;
}

Json to_json(const InterimAnalysis& analysis) {
  return {{"run", analysis.run},
          {"pairs", analysis.pairs},
          {"stopped", to_text(analysis.stop)},
          {"planned", analysis.planned},
          {"alpha_share", analysis.alpha_share}};
}

base::Result<void> add_line(const Json& line, Measured& measured) {
  if (line.contains("run")) return add_run(line, measured);
  if (line.contains("failed")) return add_failure(line.at("failed"), measured);
  if (line.contains("rules")) return add_change(line.at("rules"), measured);
  if (line.contains("host")) {
    measured.marks.push_back({line.at("first_block"), line.at("last_block"), line.at("host")});
  }
  // "sitting" and "look" in journals of earlier versions.
  for (const char* key : {"session", "sitting"}) {
    if (line.contains(key)) measured.sessions.push_back(session_from_json(line.at(key)));
  }
  for (const char* key : {"analysis", "look"}) {
    if (line.contains(key)) measured.analyses.push_back(analysis_from_json(line.at(key)));
  }
  return {};
}

}  // namespace assay::compare
