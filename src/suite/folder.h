// SuiteFolder: where a run of a suite is kept, so that an interrupted one goes on.
//
//   suite.toml        the suite as it was when the run began
//   run.json          quick or not, when it began, on which machine, by which program
//   steps/NAME.json   how a step ended, written when it did; steps/NAME.toml or .csv what it was
//                     given
//   out/              what steps printed
//   compare/NAME/     journals of experiments
//   work/NAME/        where a step's commands run; gone when it has succeeded
//   result.json       what `--json` prints
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "suite/here.h"
#include "suite/suite.h"

namespace assay::suite {

enum class StepState {
  kDone,
  kFailed,
  kImpossible,  // the machine lacks something
  kLeftOut,     // of a quick run
  kNotReached,  // interrupted before
};
std::string_view to_text(StepState state);

struct StepRun {
  std::string step;
  StepState state = StepState::kNotReached;
  std::string why;                   // unless it is done
  std::vector<double> wall_s;        // by repetition
  std::vector<std::string> outputs;  // files in the folder, by repetition
};

class SuiteFolder {
 public:
  // In a folder that is made, and must not have a run already.
  static base::Result<SuiteFolder> create(const std::filesystem::path& directory, Suite suite,
                                          bool quick, const Here& here);
  // A run that is there. One that was begun on another machine is refused: figures of two machines
  // in one table would say nothing.
  static base::Result<SuiteFolder> open(const std::filesystem::path& directory, const Here& here);

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  [[nodiscard]] const Suite& suite() const { return suite_; }
  [[nodiscard]] bool quick() const { return quick_; }
  [[nodiscard]] const base::Json& facts() const { return facts_; }  // run.json

  // How a step ended, if it has.
  [[nodiscard]] std::optional<StepRun> kept(const std::string& step) const;
  [[nodiscard]] base::Result<void> keep(const StepRun& run) const;

 private:
  SuiteFolder() = default;

  std::filesystem::path directory_;
  Suite suite_;
  bool quick_ = false;
  base::Json facts_;
};

}  // namespace assay::suite
