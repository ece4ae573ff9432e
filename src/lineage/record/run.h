// run_command(): what `assay run` does. The request is made by the verb, or from a recorded stage
// (reproduce/rerun.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lineage/filter/filter.h"
#include "lineage/record/part_folder.h"
#include "lineage/record/redirects.h"
#include "observe/collect/keeper.h"
#include "observe/collect/process/launch.h"
#include "observe/collect/tracers.h"
#include "share/limit_plan.h"
#include "store/run.h"

namespace assay::lineage {

// What is printed about the run at its end, on standard error: the command owns standard output.
enum class SummaryFormat { kNone, kLine, kJson };

struct RunRequest {
  std::vector<std::string> command;
  std::optional<collect::Tracer> tracer = std::nullopt;  // none: the first that works
  std::string name = {};
  bool build = false;
  std::vector<Filter::UserRule> user_rules = {};  // --keep, --leave-out, in the order given
  pid_t starter = 0;                              // the process that started this program
  // For `run @N`: the stage, its working directory, and the files of its standard streams.
  std::int64_t stage = 0;
  std::string directory = {};
  std::vector<Redirect> redirects = {};
  // Files that earlier runs of the stage read or left and that do not exist when this run begins.
  std::vector<std::string> absent = {};
  // The GPU limits as given (a repetition uses them again), and resolved for this machine.
  share::GpuLimitOptions gpu_options = {};
  share::LimitPlan gpu_limits = {};
  // Archives the command's outputs (archive/archive.h), and prints how much space that takes.
  bool archive = false;
  bool about_runs = false;  // store::kAboutRuns
  // The command is a verb of this program. If it exits with 64 and has neither read nor left a
  // file, it was given a wrong argument, and its run is not kept.
  bool drop_misuse = false;
  bool archive_note = true;
  // The command saves its work when it gets SIGTERM. If this program is killed, the command gets
  // one, and is recorded until it has ended; otherwise it goes on unrecorded.
  bool stops_when_killed = false;
  bool explain = false;
  bool wait = true;  // for processes that the command leaves running
  SummaryFormat summary = SummaryFormat::kNone;
  // The command is one rank of a job. Only rank 0 records a run; the other ranks hand it their
  // parts.
  std::optional<PartOf> part_of = std::nullopt;
};

// The options of a request that a later run of the same stage repeats: "--tracer=ptrace",
// "--keep=*.so". repeat_option() adds one of them to a request.
std::vector<std::string> repeatable_options(const RunRequest& request);
void repeat_option(const std::string& option, RunRequest& request);

// The record of a run that is about to start: the command with its options, the user, and a uid.
base::Result<store::RunRecord> new_run(const RunRequest& request, const collect::Launch& launch,
                                       const std::filesystem::path& directory);

// What is printed about a recorded run: one line; empty for SummaryFormat::kNone.
std::string summary_text(SummaryFormat summary, const store::RunRecord& run, std::int64_t inputs,
                         std::int64_t outputs, bool used_network);

// Runs the command and records it. All messages have been printed to standard error when it
// returns.
// With the streams of a repeated stage (reproduce/rerun.h), the command gets these, and messages
// still go to this process's.
base::Result<collect::KeeperResult> run_command(const RunRequest& request,
                                                StageStreams streams = {});

}  // namespace assay::lineage
