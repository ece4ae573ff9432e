// Constants fitted to measured rows: those under which predictions are nearest to what was
// measured, by their logarithms.
//
// A row that is far off counts by its distance, not by its square: some rows measured something
// else than they say. Each constant is pulled to the value that was known before (constants.h) and
// stays within its bounds. Rows of a project that has n count n^-1/2 each: a table with a thousand
// rows of one machine is not a thousand observations. And what a project is off by in all of its
// rows, its habit, is fitted beside the constants and thrown away: constants are what explains how
// a project's rows differ, and what all projects share. Without it one project's odd mixtures
// became everybody's time of the host.
//
//   const Constants constants = fit(rows);
//   const Fitter fitter(rows);
//   const Constants unseen = fitter.fit_without("karpathy/llm.c");
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/calibrate/rows.h"
#include "plan/model/constants.h"

namespace assay::plan {

// Whether a row's time, or its memory, is fitted and scored.
bool has_time(const Row& row);
bool has_memory(const Row& row);

// Where fits begin, which constants are pulled to.
struct FitStart {
  Constants constants = prior_constants();
  double pull =
      0.3;           // the residual of a constant at distance 1: from the middle to 73 % of a range
  bool own = false;  // fits our trainer's constants, and leaves the others
  // Of several projects, each may be off by a factor of its own in all of its rows.
  bool habits = true;
};
// Of our own runs, which are few, measured on one machine, and whose priors are guesses.
inline constexpr double kOwnPull = 0.01;

// Fits the same rows several times, each time without some. Every fit begins at the same
// constants, with what is known there of every row, and knows nothing else of the rows left out.
class Fitter {
 public:
  explicit Fitter(std::span<const Row> rows, FitStart start = {});  // rows must live as long

  [[nodiscard]] Constants fit() const;
  [[nodiscard]] Constants fit_without(std::string_view project) const;
  // Of what is fitted, in their order of appearance.
  [[nodiscard]] const std::vector<std::string>& projects() const { return projects_; }

 private:
  struct Known {
    const Row* row = nullptr;
    std::size_t project = 0;  // index
    std::size_t habit = 0;    // likewise: two of each project, of dense rows and of mixtures
    double weight = 0;
    // By constant: whether the time depends on it, and its logarithm's derivative at the priors.
    std::vector<bool> depends;
    std::vector<double> derivatives;
  };

  [[nodiscard]] Constants fit_to(std::span<const Known* const> rows) const;

  FitStart start_;
  std::vector<std::string> projects_;
  std::vector<Known> known_;
};

Constants fit(std::span<const Row> rows, const FitStart& start = {});

// The same for memory, whose rows are few and of one kind: each counts the same.
MemoryConstants fit_memory(std::span<const Row> rows);
MemoryConstants fit_memory_without(std::span<const Row> rows, std::string_view project);

}  // namespace assay::plan
