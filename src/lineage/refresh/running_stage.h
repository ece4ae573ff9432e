// RunningStage: `assay run @N` as a child of `assay refresh`, and what it prints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/process/interrupts.h"
#include "base/process/process.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "store/run.h"

namespace assay::lineage {

struct StageCommand {
  std::filesystem::path program;  // assay
  std::filesystem::path project;
  std::int64_t stage = 0;
  bool overwrite = false;  // outputs that were changed by hand
  store::RunId last_run_before = 0;
  // Gets what the stage prints; if `label` is not empty, in whole lines that begin with it.
  std::function<void(std::string_view text)> output;
  std::string label = {};
};

class RunningStage {
 public:
  // Standard output and error are a pipe, even if those of `assay refresh` are files, so that these
  // do not become files of the stage. Standard input is empty.
  static base::Result<RunningStage> start(StageCommand command);

  [[nodiscard]] std::int64_t stage() const { return command_.stage; }
  // The newest run in the store when the stage was started.
  [[nodiscard]] store::RunId last_run_before() const { return command_.last_run_before; }
  // For poll(2), readable when there is output or the process has exited; the second is -1 where
  // there are no pidfds.
  [[nodiscard]] int output_descriptor() const { return output_.get(); }
  [[nodiscard]] int exit_descriptor() const { return process_.descriptor(); }

  // Passes on what has been printed, without waiting.
  void copy_output();
  // The exit code, as a shell has it, once it has exited.
  std::optional<int> exit_code();
  [[nodiscard]] double duration_s() const { return watch_.elapsed().count(); }
  // The terminal's signals reach the stage by themselves: it is in the same process group.
  void interrupt(const base::Interrupt& interrupt) const;

 private:
  RunningStage(StageCommand command, base::Process process, base::UniqueFd output)
      : command_(std::move(command)), process_(std::move(process)), output_(std::move(output)) {}
  void pass_on(std::string_view text);

  StageCommand command_;
  base::Process process_;
  base::UniqueFd output_;
  base::Stopwatch watch_;
  std::string line_;  // an incomplete line
};

}  // namespace assay::lineage
