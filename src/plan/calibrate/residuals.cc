#include "plan/calibrate/residuals.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "plan/calibrate/fit.h"

namespace assay::plan {
namespace {

// Dense classes are mixed with all dense rows, as if this many of their projects had been drawn
// from those.
constexpr double kPooledProjects = 3;
constexpr double kWiderByProjects = 1.35;
// The structure of the model was chosen by these very errors, so those of a new project are larger:
// by about how much, the second panel's first evaluation says (docs/plan-model.md, section 9).
constexpr double kDenseWiderThanChosen = 1.65;
constexpr double kMixturesWiderThanChosen = 1.25;
constexpr double kLowPart = 0.1;
constexpr double kHighPart = 0.9;

bool is_mixture(SoftwareClass kind) {
  return kind == SoftwareClass::kMoe;
}

// Every project has the same weight, however many of its residuals count.
struct ProjectMass {
  std::map<std::string_view, double> rows;

  explicit ProjectMass(std::span<const Residual> residuals, auto&& counts) {
    for (const Residual& residual : residuals)
      if (counts(residual)) ++rows[residual.project];
  }
  [[nodiscard]] double weight(const Residual& residual) const {
    return 1 / rows.at(residual.project) / static_cast<double>(rows.size());
  }
};

std::optional<ErrorInterval> memory_of(std::span<const Row> rows,
                                       std::span<const RowPrediction> predictions, bool needed) {
  std::vector<std::pair<double, std::string_view>> found;
  std::map<std::string_view, double> counts;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool known = has_memory(rows[i]) && predictions[i].memory_gib.value_or(0) > 0;
    if (!known || has_needed_memory(rows[i]) != needed) continue;
    found.emplace_back(*rows[i].memory_gib / *predictions[i].memory_gib, rows[i].project);
    ++counts[rows[i].project];
  }
  if (found.empty()) return std::nullopt;
  std::sort(found.begin(), found.end());
  std::vector<WeightedValue> ratios;
  ratios.reserve(found.size());
  for (const auto& [ratio, project] : found) ratios.push_back({ratio, 1 / counts.at(project)});
  return ErrorInterval{.low = weighted_quantile(ratios, kLowPart),
                       .high = weighted_quantile(ratios, kHighPart),
                       .rows = static_cast<std::int64_t>(found.size()),
                       .projects = static_cast<std::int64_t>(counts.size())};
}

void widen(SeenRange& range, double value) {
  range.low = std::min(range.low, value);
  range.high = std::max(range.high, value);
}

}  // namespace

std::vector<Residual> residuals_of(std::span<const Row> rows,
                                   std::span<const RowPrediction> predictions) {
  std::vector<Residual> residuals;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!has_time(rows[i]) || !predictions[i].step_s) continue;
    const double log_ratio = std::log(*rows[i].step_s / *predictions[i].step_s);
    if (!std::isfinite(log_ratio)) continue;
    residuals.push_back(
        {.kind = class_of(rows[i]), .project = rows[i].project, .log_ratio = log_ratio});
  }
  return residuals;
}

double weighted_quantile(std::span<const WeightedValue> ordered, double part) {
  double sum = 0;
  for (const WeightedValue& one : ordered) sum += one.weight;
  const double wanted = part * sum;
  double below = 0;  // weight, up to the middle of `before`
  const WeightedValue* before = nullptr;
  for (const WeightedValue& one : ordered) {
    if (one.weight <= 0) continue;
    const double middle = below + (before != nullptr ? before->weight / 2 : 0) + one.weight / 2;
    if (wanted <= middle) {
      if (before == nullptr) return one.value;
      const double way = (wanted - below) / (middle - below);
      return before->value + way * (one.value - before->value);
    }
    below = middle;
    before = &one;
  }
  return before->value;
}

double wider_by_projects(double projects) {
  return 1 + kWiderByProjects / projects;
}

std::optional<ErrorInterval> needed_memory_of(std::span<const Row> rows,
                                              std::span<const RowPrediction> predictions) {
  std::optional<ErrorInterval> made = memory_of(rows, predictions, true);
  if (!made) return std::nullopt;
  const double wider = wider_by_projects(static_cast<double>(made->projects));
  made->low = std::min(1.0, std::pow(made->low, wider));
  made->high = std::max(1.0, std::pow(made->high, wider));
  return made;
}

std::optional<ErrorInterval> shown_memory_of(std::span<const Row> rows,
                                             std::span<const RowPrediction> predictions) {
  return memory_of(rows, predictions, false);
}

IntervalTable interval_table(std::span<const Residual> residuals) {
  std::vector<Residual> ordered(residuals.begin(), residuals.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Residual& a, const Residual& b) { return a.log_ratio < b.log_ratio; });
  IntervalTable table;
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    const auto kind = static_cast<SoftwareClass>(c);
    const auto is_own = [&](const Residual& one) { return one.kind == kind; };
    const auto is_alike = [&](const Residual& one) {
      return is_mixture(one.kind) == is_mixture(kind);
    };
    const ProjectMass own(ordered, is_own);
    const ProjectMass alike(ordered, is_alike);
    if (alike.rows.empty()) continue;
    const auto own_projects = static_cast<double>(own.rows.size());
    const double pooled = kPooledProjects / (own_projects + kPooledProjects);
    std::vector<WeightedValue> mixed;
    for (const Residual& one : ordered) {
      const double share = is_own(one) ? own.weight(one) * (1 - pooled) : 0;
      mixed.push_back({one.log_ratio, share + (is_alike(one) ? alike.weight(one) * pooled : 0)});
    }
    const double wider = wider_by_projects(static_cast<double>(alike.rows.size())) *
                         (is_mixture(kind) ? kMixturesWiderThanChosen : kDenseWiderThanChosen);
    ErrorInterval& interval = table.by_class[c];
    interval.low = std::exp(wider * std::min(0.0, weighted_quantile(mixed, kLowPart)));
    interval.high = std::exp(wider * std::max(0.0, weighted_quantile(mixed, kHighPart)));
    interval.projects = static_cast<std::int64_t>(own.rows.size());
    for (const auto& [project, rows] : own.rows) interval.rows += std::llround(rows);
  }
  return table;
}

Seen seen_in(std::span<const Row> rows) {
  Seen seen;
  seen.ranges = ranges_of(rows);
  std::map<std::string_view, SeenProjects> of_project;
  for (const Row& row : rows) {
    if (!has_time(row)) continue;
    const Work& work = row.candidates.front();
    of_project[row.project][work.shape.is_moe() ? 1 : 0][static_cast<std::size_t>(
        work.card.generation)][static_cast<std::size_t>(precision_of(work))] = 1;
    seen.software[static_cast<std::size_t>(work.software.framework)] |=
        seen_case(work.shape.is_moe(), work.card.generation, precision_of(work));
    // Adapters leave out gradients of weights, and hybrids do not attend as their heads say.
    if (work.lora || work.shape.state_share > 0) continue;
    double& most = seen.most_mfu[static_cast<std::size_t>(work.card.generation)]
                                [static_cast<std::size_t>(precision_of(work))];
    most = std::max(most, mfu_of(work, *row.step_s));
  }
  for (const auto& [project, cells] : of_project)
    for (std::size_t moe = 0; moe < cells.size(); ++moe)
      for (std::size_t g = 0; g < kGenerations; ++g)
        for (std::size_t k = 0; k < kPrecisions; ++k) seen.projects[moe][g][k] += cells[moe][g][k];
  return seen;
}

RangeTable ranges_of(std::span<const Row> rows) {
  RangeTable table;
  for (const Row& row : rows) {
    if (!has_time(row)) continue;
    const Work& work = row.candidates.front();  // they differ in their micro-batch only
    SeenRanges& seen = table[static_cast<std::size_t>(class_of(row))];
    widen(seen.parameters, work.shape.parameters);
    widen(seen.ranks, work.degrees.ranks);
    widen(seen.sequence, work.batch.sequence);
    widen(seen.card_flops, work.card.bf16_flops.count());
    widen(seen.local_experts, std::max(1.0, work.shape.experts / work.degrees.ep));
  }
  return table;
}

}  // namespace assay::plan
