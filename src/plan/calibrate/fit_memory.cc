// As fit.cc, for memory.
#include <cmath>
#include <cstdint>

#include "base/units.h"
#include "plan/calibrate/bounded.h"
#include "plan/calibrate/fit.h"
#include "plan/calibrate/least_squares.h"
#include "plan/model/memory.h"

namespace assay::plan {
namespace {

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
    if (has_memory(row) && (without == nullptr || row.source != *without))
      known.push_back({.work = predict(row, priors)->work, .gib = *row.memory_gib});
  return fit_memory_to(known);
}

}  // namespace

bool has_memory(const Row& row) {
  return !row.flagged && !row.candidates.empty() && row.memory_gib && *row.memory_gib > 0 &&
         std::isfinite(*row.memory_gib);
}

MemoryConstants fit_memory(std::span<const Row> rows) {
  return fit_memory_of(rows, nullptr);
}

MemoryConstants fit_memory_without(std::span<const Row> rows, std::string_view source) {
  return fit_memory_of(rows, &source);
}

}  // namespace assay::plan
