#include "assay/compare/json.h"

#include <algorithm>
#include <cmath>

namespace assay::cli {
namespace {

using base::Json;
using compare::Comparison;
using compare::ConfidenceInterval;
using compare::Effect;
using compare::Estimate;
using compare::Experiment;
using compare::Method;

Json interval_json(double centre, const ConfidenceInterval& interval) {
  const ConfidenceInterval p = compare::percent(interval);
  return {{"effect_pct", compare::percent(centre)}, {"ci_low_pct", p.low}, {"ci_high_pct", p.high}};
}

void add_estimate(const Estimate& e, Json& json) {
  const bool known = e.method != Method::kNone;
  const ConfidenceInterval p = compare::percent(e.interval);
  json["effect_pct"] = e.pairs > 0 ? Json(compare::percent(e.centre)) : Json(nullptr);
  json["ratio"] = e.pairs > 0 ? Json(std::exp(e.centre)) : Json(nullptr);
  json["ci_low_pct"] = known ? Json(p.low) : Json(nullptr);
  json["ci_high_pct"] = known ? Json(p.high) : Json(nullptr);
  json["method"] = to_text(e.method);
  json["pairs"] = e.pairs;
}

Json shift_json(const std::optional<compare::Shift>& shift) {
  if (!shift || shift->estimate.method == Method::kNone) return nullptr;
  return {{"baseline", shift->baseline},
          {"difference", shift->estimate.centre},
          {"ci_low", shift->estimate.interval.low},
          {"ci_high", shift->estimate.interval.high}};
}

Json effect_json(const Effect& effect) {
  const Estimate& e = effect.estimate;
  Json json;
  add_estimate(e, json);
  json["confidence"] = 1 - effect.alpha;
  json["student_t"] = effect.student ? interval_json(effect.mean, *effect.student) : Json(nullptr);
  json["bootstrap_bca"] =
      effect.bootstrap ? interval_json(effect.mean, *effect.bootstrap) : Json(nullptr);
  const bool some = e.pairs > 0;
  json["signs"] = {{"more", effect.signs.more},
                   {"less", effect.signs.less},
                   {"equal", effect.signs.equal},
                   {"p", some ? Json(effect.signs.p) : Json(nullptr)}};
  json["autocorrelation"] = some ? Json(e.autocorrelation) : Json(nullptr);
  json["widening"] = some ? Json(e.widening) : Json(nullptr);
  json["effective_pairs"] = e.effective_pairs();
  json["drift"] =
      some ? Json{{"change_pct", compare::percent(effect.drift.change)}, {"p", effect.drift.p}}
           : Json(nullptr);
  json["outliers"] = effect.outliers;
  json["pairs_needed"] = {
      {"for_0.1_pct", base::or_null(compare::pairs_to_detect(e, 0.1, effect.alpha))},
      {"for_1_pct", base::or_null(compare::pairs_to_detect(e, 1, effect.alpha))}};
  return json;
}

// The interval that decides the verdict.
Json judged_json(const Comparison& comparison) {
  const Estimate& e = comparison.judged;
  if (e.method == Method::kNone) return nullptr;
  const ConfidenceInterval p = compare::percent(e.interval);
  return {{"ci_low_pct", p.low}, {"ci_high_pct", p.high}, {"method", to_text(e.method)}};
}

// When the estimate was reported, and the confidence that a verdict needed; the last one is this
// one.
Json analyses_json(const compare::Measured& measured) {
  Json analyses = Json::array();
  for (const compare::InterimAnalysis& analysis : measured.analyses) {
    const double alpha = measured.experiment.alpha() * analysis.alpha_share;
    analyses.push_back(
        {{"pairs", analysis.pairs},
         {"stopped", to_text(analysis.stop)},
         {"planned", analysis.planned},
         {"confidence", analysis.alpha_share > 0 ? Json(1 - alpha) : Json(nullptr)}});
  }
  return analyses;
}

Json changes_json(const compare::Measured& measured) {
  Json changes = Json::array();
  for (const compare::RuleChange& change : measured.changes) {
    changes.push_back(
        {{"pairs", change.pairs}, {"from", to_json(change.from)}, {"to", to_json(change.to)}});
  }
  return changes;
}

template <class Items>
Json list_json(const Items& items) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

// Null after a failure: then there is none.
Json verdict_json(const ExperimentResult& c, compare::IntervalVerdict verdict) {
  return c.stop == compare::StopReason::kFailed ? Json(nullptr) : Json(to_text(verdict));
}

Json comparison_json(const ExperimentResult& c, const Comparison& comparison) {
  const Experiment& experiment = c.measured.experiment;
  Json json = {{"arm", experiment.name_of(comparison.arm)},
               {"baseline", experiment.arms.front().name},
               {"verdict", verdict_json(c, comparison.verdict)},
               {"judged_by", judged_json(comparison)}};
  json.update(effect_json(comparison.effect));
  if (experiment.steps) {
    json["steps"] = comparison.steps;
    json["pairs_without_common_steps"] = comparison.unmatched;
    json["whole_runs"] =
        comparison.whole_runs ? effect_json(*comparison.whole_runs) : Json(nullptr);
    json["startup_s"] = shift_json(comparison.startup_s);
    json["after_s"] = shift_json(comparison.after_s);
    json["outside_steps_s"] = shift_json(comparison.outside_s);
  }
  if (experiment.quality) {
    json["quality"] = shift_json(comparison.quality);
    json["quality_within_noise"] = base::or_null(comparison.quality_within_noise);
  }
  return json;
}

Json arms_json(const ExperimentResult& c) {
  const Experiment& experiment = c.measured.experiment;
  Json arms = Json::array();
  for (const compare::ArmSummary& arm : c.findings.arms) {
    const compare::Arm& given = experiment.arm_of(arm.arm);
    // Null without a run that counts: 0 would look like a value.
    const auto known = [&](double value) { return arm.runs > 0 ? Json(value) : Json(nullptr); };
    arms.push_back({{"name", experiment.name_of(arm.arm)},
                    {"command", given.command},
                    {"environment", given.environment},
                    {"runs", arm.runs},
                    {"median", known(arm.median)},
                    {"least", known(arm.low)},
                    {"most", known(arm.high)},
                    {"noise_pct", known(arm.deviation_pct)},
                    {"wall_s", known(arm.wall_s)},
                    {"cpu_s", known(arm.cpu_s)}});
    if (!experiment.scanned.empty()) arms.back()["values"] = given.values;
    if (experiment.steps) {
      arms.back()["steps_per_run"] = {{"least", arm.least_steps}, {"most", arm.most_steps}};
    }
  }
  return arms;
}

// Of a scan: the arm with the best value, and those that cannot be told from it.
Json best_json(const ExperimentResult& c) {
  Json names = Json::array();
  for (const std::size_t arm : compare::best_arms(c.measured.experiment, c.findings))
    names.push_back(c.measured.experiment.name_of(arm));
  return names;
}

// Groups of arms from best to worst; those of a group cannot all be told apart.
Json order_json(const ExperimentResult& c) {
  Json groups = Json::array();
  for (const auto& group : c.findings.ranking.groups) {
    Json names = Json::array();
    for (const std::size_t arm : group) names.push_back(c.measured.experiment.name_of(arm));
    groups.push_back(std::move(names));
  }
  return groups;
}

Json all_pairs_json(const ExperimentResult& c) {
  Json rows = Json::array();
  for (const compare::ArmPair& pair : c.findings.ranking.pairs) {
    Json row = {{"arm", c.measured.experiment.name_of(pair.arm)},
                {"against", c.measured.experiment.name_of(pair.from)},
                {"confidence_pct", 100 * (1 - c.findings.ranking.pair_alpha)},
                {"differ", pair.differ}};
    add_estimate(pair.estimate, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

// A row per block, with the values in the order of arms[].
Json pairs_json(const ExperimentResult& c) {
  Json rows = Json::array();
  for (const compare::Block& block : c.findings.blocks.complete) {
    Json runs = Json::array();
    Json values = Json::array();
    for (const compare::ArmRun* run : block.runs) {
      runs.push_back(run->run);
      values.push_back(run->value);
    }
    rows.push_back({{"block", block.number},
                    {"values", values},
                    {"runs", runs},
                    {"warm_up", block.warm_up},
                    {"host", block.marks}});
  }
  return rows;
}

}  // namespace

Json experiment_json(const ExperimentResult& c) {
  const Experiment& experiment = c.measured.experiment;
  const compare::Findings& f = c.findings;
  Json json;
  json["arm"] = experiment.name_of(f.deciding().arm);
  add_estimate(f.deciding().effect.estimate, json);
  json["noise_floor_pct"] = base::or_null(f.noise_floor_pct);
  json["verdict"] = verdict_json(c, f.verdict);
  json["margin_pct"] =
      experiment.judgement.judged ? Json(experiment.judgement.margin_pct) : Json(nullptr);
  json["metric"] = experiment.steps ? experiment.steps->text() : experiment.metric.text();
  json["stopped"] = to_text(c.stop);
  json["failure"] = c.failure ? Json(c.failure->line()) : Json(nullptr);
  json["interim_analyses"] = analyses_json(c.measured);
  json["rule_changes"] = changes_json(c.measured);
  if (!experiment.scanned.empty()) {
    json["scanned"] = experiment.scanned;
    json["best"] = best_json(c);
  }
  if (!f.ranking.empty()) {
    json["order"] = order_json(c);
    json["all_pairs"] = all_pairs_json(c);
  }
  json["arms"] = arms_json(c);
  Json comparisons = Json::array();
  for (const Comparison& comparison : f.comparisons) {
    comparisons.push_back(comparison_json(c, comparison));
  }
  json["comparisons"] = std::move(comparisons);
  json["second_baseline"] =
      f.second_baseline ? comparison_json(c, *f.second_baseline) : Json(nullptr);
  json["warm_up_blocks"] = f.blocks.warm_up;
  json["blocks_cut_short"] = f.blocks.cut_short;
  json["blocks_marked"] = f.marked;
  json["failed_runs"] = list_json(c.measured.failures);
  json["sessions"] = list_json(c.measured.sessions);
  json["preflight"] = c.preflight;
  json["warnings"] = f.warnings;
  json["seed"] = experiment.seed;
  json["directory"] = c.directory;
  json["pairs_raw"] = pairs_json(c);
  return json;
}

compare::IntervalVerdict ScanResult::verdict() const {
  using compare::IntervalVerdict;
  for (const IntervalVerdict worst : {IntervalVerdict::kFail, IntervalVerdict::kInconclusive}) {
    const auto is_worst = [&](const Point& point) {
      return point.result->findings.verdict == worst;
    };
    if (std::any_of(points.begin(), points.end(), is_worst)) return worst;
  }
  return points.empty() ? IntervalVerdict::kInconclusive : IntervalVerdict::kPass;
}

Json scan_json(const ScanResult& scan) {
  Json experiments = Json::array();
  for (const ScanResult::Point& point : scan.points) {
    Json json = {{"values", point.values}};
    json.update(experiment_json(*point.result));
    experiments.push_back(std::move(json));
  }
  const bool failed = !scan.points.empty() && scan.points.back().result->failure.has_value();
  return {{"scanned", scan.parameters},
          {"verdict", failed ? Json(nullptr) : Json(to_text(scan.verdict()))},
          {"failure", failed ? Json(scan.points.back().result->failure->line()) : Json(nullptr)},
          {"experiments", std::move(experiments)},
          {"directory", scan.directory}};
}

}  // namespace assay::cli
