// assay compare: what does B add to A? Runs commands in random order until the answer is precise
// enough, and judges it against a margin.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "assay/compare/execute.h"
#include "assay/compare/export.h"
#include "assay/compare/options.h"
#include "assay/compare/print.h"
#include "assay/compare/scan.h"
#include "assay/project.h"
#include "assay/verbs.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "compare/run_experiment.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

base::ExitCode exit_code(compare::IntervalVerdict verdict, bool interrupted) {
  switch (verdict) {
    case compare::IntervalVerdict::kPass:
      return base::ExitCode::kYes;
    case compare::IntervalVerdict::kFail:
      return base::ExitCode::kNo;
    case compare::IntervalVerdict::kNotJudged:
      return interrupted ? base::ExitCode::kInconclusive : base::ExitCode::kYes;
    case compare::IntervalVerdict::kInconclusive:
      break;
  }
  return base::ExitCode::kInconclusive;
}

std::string resume_command(const std::string& directory) {
  return fmt::format("assay compare --resume {}", base::shell_quoted(directory));
}

// The command to continue with, including an option: if the stopping rule is already met, resuming
// without one would end at once.
std::string how_to_continue(const ExperimentResult& result) {
  std::string command = resume_command(result.directory);
  const compare::StopRule& rule = result.measured.experiment.stop;
  if (result.stop == compare::StopReason::kPairs) {
    command += fmt::format(" --max-pairs {}", 2 * rule.max_pairs);
  } else if (result.stop == compare::StopReason::kNarrow) {
    command += fmt::format(" --half-width {:g}%", rule.half_width_pct / 2);
  }
  return command;
}

bool is_inconclusive(const ExperimentResult& result) {
  return result.findings.verdict == compare::IntervalVerdict::kInconclusive ||
         (result.findings.verdict == compare::IntervalVerdict::kNotJudged &&
          result.stop == compare::StopReason::kNo);
}

base::Error with_hint(base::Error failure, const std::string& hint) {
  failure.hint += (failure.hint.empty() ? "" : "; ") + hint;
  return failure;
}

// The error for an arm that has never succeeded: resuming would repeat the failure.
base::Error not_resumable(const base::Error& failure) {
  return failure.hint.empty() ? with_hint(failure, "correct it and compare again") : failure;
}

// The failure that ended it, with what to do next.
base::Error failure_of(const ExperimentResult& result) {
  const compare::Measured& measured = result.measured;
  if (!measured.may_succeed_when_resumed()) return not_resumable(*result.failure);
  const auto runs = static_cast<std::int64_t>(measured.runs.size());
  return with_hint(*result.failure, fmt::format("{} kept; continue with {}",
                                                base::counted(runs, "run is", "runs are"),
                                                resume_command(result.directory)));
}

// The same for a scan, which is resumed as a whole and keeps the measurements of earlier values.
base::Error failure_of(const ScanResult& scan) {
  const ExperimentResult& last = *scan.points.back().result;
  if (scan.points.size() == 1 && !last.measured.may_succeed_when_resumed()) {
    return not_resumable(*last.failure);
  }
  return with_hint(*last.failure, fmt::format("when that is corrected, continue with {}",
                                              resume_command(scan.directory)));
}

base::Result<base::ExitCode> finish_experiment(const Session& session,
                                               const CompareOptions& options,
                                               const fs::path& working_directory,
                                               const ExperimentResult& result) {
  // First, because printing ends the process if the reader of standard output has ended.
  const auto exported = export_experiment(options.exports, working_directory, result);
  session.print_json(experiment_json(result));
  if (!result.failure || !result.findings.blocks.complete.empty()) {
    print_experiment(session, result);
  }
  if (result.failure) return base::fail(failure_of(result));
  ASSAY_TRY_VOID(exported);
  if (is_inconclusive(result)) session.next(how_to_continue(result));
  return exit_code(result.findings.verdict, result.stop == compare::StopReason::kNo);
}

base::Result<base::ExitCode> finish_scan(const Session& session, const CompareOptions& options,
                                         const fs::path& working_directory,
                                         const ScanResult& scan) {
  const base::Json document = scan_json(scan);
  ASSAY_TRY_VOID(
      base::replace_file(fs::path(scan.directory) / "result.json", base::json_text(document)));
  const auto exported = export_scan(options.exports, working_directory, scan);
  session.print_json(document);
  print_scan(session, scan);
  const ExperimentResult& last = *scan.points.back().result;
  if (last.failure) return base::fail(failure_of(scan));
  ASSAY_TRY_VOID(exported);
  const bool interrupted = last.stop == compare::StopReason::kNo;
  if (interrupted) session.next(resume_command(scan.directory));
  return interrupted ? base::ExitCode::kInconclusive : exit_code(scan.verdict(), false);
}

base::Result<base::ExitCode> run_compare(const Session& session, const CompareOptions& options) {
  // Taken first, because resuming changes to the folder that the commands ran in.
  ASSAY_TRY(const fs::path directory, working_directory());
  ASSAY_TRY_VOID(check_exports(options.exports, directory));
  if (!options.resume.empty()) {
    const fs::path folder = fs::absolute(options.resume);
    if (is_scan_folder(folder)) {
      ASSAY_TRY(const ScanResult scan, resume_scan(session, options, folder));
      return finish_scan(session, options, directory, scan);
    }
    ASSAY_TRY(const auto result, resume_experiment(session, options, folder));
    return finish_experiment(session, options, directory, *result);
  }
  ASSAY_TRY(RequestedExperiments requested, requested_experiments(options));
  for (const compare::ScanPoint& point : requested.points) {
    ASSAY_TRY_VOID(compare::check_programs(point.experiment));
  }
  ASSAY_TRY(const fs::path folder, results_folder("compare", options.output));
  if (!requested.parameters.empty()) {
    ASSAY_TRY(const ScanResult scan, begin_scan(session, std::move(requested), folder));
    return finish_scan(session, options, directory, scan);
  }
  ASSAY_TRY(const auto result,
            begin_experiment(session, requested.points.front().experiment, folder));
  return finish_experiment(session, options, directory, *result);
}

std::vector<std::string> metric_forms() {
  return {"wall", "cpu", "regex:", "json:", "stored:"};
}

std::vector<Option> option_list(CompareOptions& o) {
  return {
      {"--a", "the baseline", &o.a, {}, "COMMAND"},
      {"--b", "what to compare with the baseline", &o.b, {}, "COMMAND"},
      {"--arm", "another arm", &o.arms, {}, "NAME=COMMAND"},
      {"--under", "compare COMMAND with WRAPPER COMMAND", &o.under, {}, "WRAPPER"},
      {"--scan", "replace {N} in the commands by each value", &o.scans, {}, "N=VALUE,VALUE"},
      {"--file", "an experiment in TOML", &o.file, {}, "FILE", true},
      {"--metric", "wall, cpu, regex:PATTERN, json:PATH or stored:NAME; default: wall", &o.metric,
       metric_forms, "METRIC"},
      {"--steps",
       "compare step by step: regex:PATTERN with two groups, json:STEP,VALUE or stored:NAME",
       &o.steps,
       {},
       "WHERE"},
      {"--step-unit", "unit of the step times; default: s", &o.step_unit,
       [] {
         return std::vector<std::string>{"s", "ms", "us"};
       },
       "UNIT"},
      {"--quality", "a number that must not change, such as a loss; given like a metric",
       &o.quality, metric_forms, "METRIC"},
      {"--margin", "how much worse B may be; default: 1%", &o.margin, {}, "PERCENT"},
      {"--more-is-better", "the metric is a throughput", &o.more_is_better},
      {"--half-width",
       "stop when the interval is at most ± this; default: 0.25%",
       &o.half_width,
       {},
       "PERCENT"},
      {"--max-time", "stop after this time; default: 10min", &o.max_time, {}, "TIME"},
      {"--min-pairs",
       "run at least this many pairs before a narrow interval stops the experiment; default: 20",
       &o.min_pairs,
       {},
       "N"},
      {"--max-pairs", "stop after this many pairs", &o.max_pairs, {}, "N"},
      {"--warm-up", "warm-up blocks, which do not count; default: detected", &o.warm_up, {}, "N"},
      {"--timeout", "time limit of one run", &o.timeout, {}, "TIME"},
      {"--prepare", "run before every run, not timed", &o.prepare, {}, "COMMAND"},
      {"--cleanup", "run after every run, not timed", &o.cleanup, {}, "COMMAND"},
      {"--no-second-baseline", "run A once per block, not twice: faster, but no noise floor",
       &o.no_second_baseline},
      {"--seed", "seed of the random order of runs; default: random", &o.seed, {}, "N"},
      {"-o,--output",
       "folder for runs and results; default: in the project, else a temporary one",
       &o.output,
       {},
       "DIR",
       true},
      {"--export",
       "write every run (.csv), a table of the verdicts (.md) or all (.json)",
       &o.exports,
       {},
       "FILE",
       true},
      {"--resume", "continue the experiment or scan in this folder", &o.resume, {}, "DIR", true}};
}

}  // namespace

Verb compare_verb(const Session& session) {
  const auto options = std::make_shared<CompareOptions>();
  return {
      .name = "compare",
      .description =
          "measure the effect of B against A: paired runs in random order, an interval, a verdict",
      .examples =
          {"assay compare --a 'sleep 0.2' --b 'sleep 0.01' --max-pairs 6 --no-second-baseline",
           "assay compare --under 'nice -n 1' --metric 'regex:[0-9]+' --max-pairs 6 -- echo 100",
           "assay compare --a 'echo speed 100' --b 'echo speed 101' --metric "
           "'regex:speed ([0-9.]+)' --more-is-better --max-pairs 8",
           "assay compare --scan N=0.01,0.02,0.04 --max-pairs 6 --export scan.md -- 'sleep {N}'"},
      .options = option_list(*options),
      .wrapped = {"COMMAND", "with --under or --scan: the command and its arguments",
                  &options->command},
      .action = [&session, options] { return run_compare(session, *options); }};
}

}  // namespace assay::cli
