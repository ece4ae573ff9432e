// SuiteFolder: the folder of one run of a suite, from which an interrupted run can be continued.
//
//   suite.toml        the suite as it was when the run began
//   run.json          quick or not, start time, machine, version of the program
//   cases/NAME.json   how a case ended; cases/NAME.toml or .csv is its input
//   out/              output of the cases
//   compare/NAME/     journals of experiments
//   work/NAME/        working directory of a case; removed when it has succeeded
//   result.json       what `--json` prints
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "suite/suite.h"
#include "suite/suite_host.h"

namespace assay::suite {

enum class CaseState {
  kDone,
  kFailed,
  kImpossible,  // the machine lacks a requirement
  kLeftOut,     // not part of a quick run
  kNotReached,  // interrupted before it started
};
std::string_view to_text(CaseState state);

struct CaseRun {
  std::string name;
  CaseState state = CaseState::kNotReached;
  std::string why;                   // why it is not done
  std::vector<double> wall_s;        // by repetition
  std::vector<std::string> outputs;  // files in the folder, by repetition
};

class SuiteFolder {
 public:
  // Creates the folder; fails if it already contains a run.
  static base::Result<SuiteFolder> create(const std::filesystem::path& directory, Suite suite,
                                          bool quick, const SuiteHost& here);
  // Opens an existing run. Fails if it was started on another machine: figures from two machines in
  // one table could not be compared.
  static base::Result<SuiteFolder> open(const std::filesystem::path& directory,
                                        const SuiteHost& here);

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  [[nodiscard]] const Suite& suite() const { return suite_; }
  [[nodiscard]] bool quick() const { return quick_; }
  [[nodiscard]] const base::Json& facts() const { return facts_; }  // run.json

  // How a case ended; nothing if it has not.
  [[nodiscard]] std::optional<CaseRun> kept(const std::string& name) const;
  [[nodiscard]] base::Result<void> keep(const CaseRun& run) const;

 private:
  SuiteFolder() = default;  // NOLINT(bugprone-exception-escape): as store::Context

  std::filesystem::path directory_;
  Suite suite_;
  bool quick_ = false;
  base::Json facts_;
};

}  // namespace assay::suite
