// Constants fitted to measured rows: those under which predictions are nearest to what was
// measured, by their logarithms.
//
// - The loss is linear, not quadratic, for large errors: some rows measured something other than
//   they say.
// - A penalty draws each constant towards its prior (constants.h), and it stays within its bounds.
// - A row of a project that has n rows weighs n^-1/2: a thousand rows of one machine are not a
//   thousand observations.
// - A project effect is a factor common to all dense or all mixture rows of a project. It is fitted
//   beside the constants and then discarded, so that constants explain how the rows of a project
//   differ and what all projects have in common. Without it, the unusual mixtures of one project
//   determined the host time of all.
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
// Of these, those whose allocator was read: constants of memory are fitted to them alone.
bool has_needed_memory(const Row& row);

// Where a fit begins, and the priors that its penalty refers to.
struct FitStart {
  Constants constants = prior_constants();
  // The residual of a constant at distance 1, which is from the middle of its range to 73 %.
  double pull = 0.3;
  bool own = false;  // fits our trainer's constants, and leaves the others
  // Fit a project effect, if there are several projects.
  bool project_effects = true;
};

// Fits the same rows several times, each time without some. Every fit begins at the same constants.
// Derivatives at that point are computed once for all rows; nothing else of the rows left out is
// used.
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
    std::size_t effect = 0;   // likewise: two of each project, of dense rows and of mixtures
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

// The same for memory, whose rows are few and of one kind: all have the same weight.
MemoryConstants fit_memory(std::span<const Row> rows);
MemoryConstants fit_memory_without(std::span<const Row> rows, std::string_view project);

}  // namespace assay::plan
