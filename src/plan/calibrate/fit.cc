#include "plan/calibrate/fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/units.h"
#include "plan/calibrate/least_squares.h"
#include "plan/model/memory.h"

namespace assay::plan {
namespace {

// A constant within its bounds as a coordinate that has none, so that no step of a fit leaves them.
// A value at a bound would be infinitely far away.
constexpr double kNearestToBound = 1e-3;  // of the way between the two

double unbounded(double value, double low, double high) {
  const double part =
      std::clamp((value - low) / (high - low), kNearestToBound, 1 - kNearestToBound);
  return std::log(part / (1 - part));
}

double bounded(double coordinate, double low, double high) {
  return low + (high - low) / (1 + std::exp(-coordinate));
}

// How fast a row counts less with the rows of its project.
constexpr double kProjectExponent = -0.5;
// The residual of a project effect of 1. Effects are small for dense rows, which agree, and
// larger for mixtures, where software decides half of a step.
constexpr double kDenseEffectPull = 25;
constexpr double kMixtureEffectPull = 0.5;
// Step of differences, in units of coordinates.
constexpr double kDifference = 1e-3;

std::vector<const ConstantInfo*> fitted_constants(bool own) {
  std::vector<const ConstantInfo*> fitted;
  for (const ConstantInfo& info : constant_table())
    if (own ? info.own : info.fitted) fitted.push_back(&info);
  return fitted;
}

// What is not fitted stays as it is in `start`.
Constants constants_at(std::span<const double> coordinates, const FitStart& start) {
  Constants constants = start.constants;
  std::size_t k = 0;
  for (const ConstantInfo* info : fitted_constants(start.own))
    constants.*info->value = bounded(coordinates[k++], info->low, info->high);
  return constants;
}

std::vector<double> coordinates_of(const FitStart& start) {
  std::vector<double> coordinates;
  for (const ConstantInfo* info : fitted_constants(start.own))
    coordinates.push_back(unbounded(start.constants.*info->value, info->low, info->high));
  return coordinates;
}

// log(predicted / measured).
double error_of(const Row& row, const Constants& constants) {
  return std::log(predict(row, constants)->step_s / *row.step_s);
}

// One step away in each coordinate.
std::vector<Constants> neighbours(std::span<const double> coordinates, const FitStart& start) {
  std::vector<Constants> near;
  std::vector<double> at(coordinates.begin(), coordinates.end());
  for (double& coordinate : at) {
    const double before = coordinate;
    coordinate += kDifference;
    near.push_back(constants_at(at, start));
    coordinate = before;
  }
  return near;
}

// Whether a row's prediction moves when the constant goes from end to end. Most rows have nothing
// to do with most constants (mixtures, fp8, DTensor …), and finding that out again at each step was
// half of a fit's time. `error` is that at `constants`.
bool depends_on(const ConstantInfo& info, const Row& row, Constants constants, double error) {
  constants.*info.value = info.low;
  if (error_of(row, constants) != error) return true;
  constants.*info.value = info.high;
  return error_of(row, constants) != error;
}

constexpr base::Bytes kGib(std::int64_t{1} << 30);
// Residual of a constant that has twice its prior. Weak: the priors are guesses.
constexpr double kMemoryPull = 0.02;
constexpr double kMemoryDifference = 1e-4;

MemoryConstants memory_constants_at(std::span<const double> coordinates) {
  MemoryConstants constants;
  std::size_t k = 0;
  for (const MemoryConstantInfo& info : memory_constant_table())
    constants.*info.value = bounded(coordinates[k++], info.low, info.high);
  return constants;
}

struct MemoryRow {
  const Work* work = nullptr;
  double gib = 0;
};

MemoryConstants fit_memory_to(std::span<const MemoryRow> rows) {
  const auto table = memory_constant_table();
  std::vector<double> start;
  for (const MemoryConstantInfo& info : table)
    start.push_back(unbounded(info.prior, info.low, info.high));
  LeastSquaresProblem problem{.residuals = rows.size() + table.size()};
  problem.evaluate = [&](std::span<const double> at, std::span<double> values) {
    const MemoryConstants constants = memory_constants_at(at);
    for (std::size_t i = 0; i < rows.size(); ++i)
      values[i] = std::log(memory_need(*rows[i].work, constants).total() / kGib / rows[i].gib);
    for (std::size_t k = 0; k < table.size(); ++k)
      values[rows.size() + k] = kMemoryPull * (constants.*table[k].value / table[k].prior - 1);
  };
  problem.differentiate = [&](std::span<const double> at, std::span<const double> values,
                              std::span<double> derivatives) {
    forward_differences(problem, at, values, kMemoryDifference, derivatives);
  };
  return memory_constants_at(least_squares(problem, start).at);
}

MemoryConstants fit_memory_of(std::span<const Row> rows, const std::string_view* without) {
  const Constants priors = prior_constants();
  std::vector<MemoryRow> known;
  for (const Row& row : rows)
    if (has_needed_memory(row) && (without == nullptr || row.project != *without))
      known.push_back({.work = predict(row, priors)->work, .gib = *row.memory_gib});
  return fit_memory_to(known);
}

}  // namespace

bool has_time(const Row& row) {
  return !row.flagged && !row.candidates.empty() && row.step_s && *row.step_s > 0 &&
         std::isfinite(*row.step_s);
}

Fitter::Fitter(std::span<const Row> rows, FitStart start) : start_(start) {
  for (const Row& row : rows) {
    if (!has_time(row) || !std::isfinite(error_of(row, start_.constants))) continue;
    const auto place = std::find(projects_.begin(), projects_.end(), row.project);
    const auto project = static_cast<std::size_t>(place - projects_.begin());
    const std::size_t mixture = row.candidates.front().shape.is_moe() ? 1 : 0;
    known_.push_back({.row = &row, .project = project, .effect = 2 * project + mixture});
    if (place == projects_.end()) projects_.push_back(row.project);
  }
  std::vector<double> counts(projects_.size());
  for (const Known& known : known_) ++counts[known.project];

  const std::vector<Constants> near = neighbours(coordinates_of(start_), start_);
  const std::vector<const ConstantInfo*> fitted = fitted_constants(start_.own);
  for (Known& known : known_) {
    known.weight = std::pow(counts[known.project], kProjectExponent);
    const double error = error_of(*known.row, start_.constants);
    for (std::size_t k = 0; k < near.size(); ++k) {
      known.depends.push_back(depends_on(*fitted[k], *known.row, start_.constants, error));
      known.derivatives.push_back((error_of(*known.row, near[k]) - error) / kDifference);
    }
  }
}

// Unknowns are the coordinates of the constants and, after them, the project effects.
Constants Fitter::fit_to(std::span<const Known* const> rows) const {
  const std::vector<double> start = coordinates_of(start_);
  double mean = 0;
  for (const Known* known : rows) mean += known->weight / static_cast<double>(rows.size());
  std::vector<double> roots;
  for (const Known* known : rows) roots.push_back(std::sqrt(known->weight / mean));

  const std::size_t count = start.size();
  const std::size_t effects =
      start_.project_effects && projects_.size() > 1 ? 2 * projects_.size() : 0;
  std::vector<double> first = start;
  first.resize(count + effects);
  const auto effect_of = [&](const Known& known, std::span<const double> at) {
    return effects > 0 ? at[count + known.effect] : 0;
  };
  const auto effect_pull = [](std::size_t effect) {
    return effect % 2 == 0 ? kDenseEffectPull : kMixtureEffectPull;
  };

  LeastSquaresProblem problem{.residuals = rows.size() + first.size()};
  problem.evaluate = [&](std::span<const double> at, std::span<double> values) {
    const Constants constants = constants_at(at, start_);
    for (std::size_t i = 0; i < rows.size(); ++i)
      values[i] = roots[i] * (error_of(*rows[i]->row, constants) - effect_of(*rows[i], at));
    for (std::size_t k = 0; k < count; ++k)
      values[rows.size() + k] = start_.pull * (at[k] - start[k]);
    for (std::size_t k = 0; k < effects; ++k)
      values[rows.size() + count + k] = effect_pull(k) * at[count + k];
  };
  problem.differentiate = [&](std::span<const double> at, std::span<const double> values,
                              std::span<double> derivatives) {
    const bool at_start = std::equal(start.begin(), start.end(), at.begin());
    const std::vector<Constants> near =
        at_start ? std::vector<Constants>() : neighbours(at.first(count), start_);
    std::fill(derivatives.begin(), derivatives.end(), 0);
    const auto column_of = [&](std::size_t k) {
      return derivatives.subspan(k * values.size(), values.size());
    };
    for (std::size_t k = 0; k < count; ++k) {
      const auto column = column_of(k);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i]->depends[k]) continue;
        const double here = values[i] + roots[i] * effect_of(*rows[i], at);
        column[i] = at_start ? roots[i] * rows[i]->derivatives[k]
                             : (roots[i] * error_of(*rows[i]->row, near[k]) - here) / kDifference;
      }
      column[rows.size() + k] = start_.pull;
    }
    for (std::size_t k = 0; k < effects; ++k) {
      const auto column = column_of(count + k);
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i]->effect == k) column[i] = -roots[i];
      column[rows.size() + count + k] = effect_pull(k);
    }
  };
  return constants_at(least_squares(problem, first).at, start_);
}

Constants Fitter::fit() const {
  std::vector<const Known*> rows;
  for (const Known& known : known_) rows.push_back(&known);
  return fit_to(rows);
}

Constants Fitter::fit_without(std::string_view project) const {
  std::vector<const Known*> rows;
  for (const Known& known : known_)
    if (projects_[known.project] != project) rows.push_back(&known);
  return fit_to(rows);
}

Constants fit(std::span<const Row> rows, const FitStart& start) {
  return Fitter(rows, start).fit();
}

bool has_memory(const Row& row) {
  return !row.flagged && !row.by_rate && !row.candidates.empty() && row.memory_gib &&
         *row.memory_gib > 0 && std::isfinite(*row.memory_gib);
}

bool has_needed_memory(const Row& row) {
  return has_memory(row) && row.memory_counted;
}

MemoryConstants fit_memory(std::span<const Row> rows) {
  return fit_memory_of(rows, nullptr);
}

MemoryConstants fit_memory_without(std::span<const Row> rows, std::string_view project) {
  return fit_memory_of(rows, &project);
}

}  // namespace assay::plan
