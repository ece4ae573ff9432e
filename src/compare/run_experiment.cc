#include "compare/run_experiment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/process/environment.h"
#include "compare/findings.h"
#include "compare/metric_reader.h"
#include "compare/schedule.h"
#include "compare/stopping.h"

namespace assay::compare {
namespace {

namespace fs = std::filesystem;

// The kernel counts processor time in hundredths of a second: shorter samples are too coarse.
constexpr double kShortestSample = 1.0;
// With this many pairs one more changes little: the estimate is updated every second block, with
// twice as many every third, and so on, so that its cost stays linear.
constexpr std::int64_t kPairsPerSkip = 100;

base::Environment environment_of(const Arm& arm) {
  base::Environment environment = base::Environment::from_current();
  environment.unset(kPadVariable);
  for (const std::string& setting : arm.environment) {
    const std::size_t equals = setting.find('=');
    environment.set(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return environment;
}

// An arm's arguments and environment, which are the same for all its runs.
struct PreparedArm {
  std::vector<std::string> arguments;
  base::Environment environment;
};

class ExperimentRunner {
 public:
  ExperimentRunner(Measured& measured, Journal& journal, Host& host, Interrupts& interrupts)
      : measured_(measured), journal_(journal), host_(host), interrupts_(interrupts) {}

  // The error of run_block() is about a command, not about this program.
  [[nodiscard]] bool arm_failed() const { return arm_failed_; }

  base::Result<void> prepare() {
    bool shell = false;
    for (const Arm& arm : measured_.experiment.arms) shell = shell || !plain_arguments(arm.command);
    for (std::size_t i = 0; i < measured_.experiment.runs_per_block(); ++i) {
      const Arm& arm = measured_.experiment.arm_of(i);
      // A shell takes time: all arms get one, or none.
      prepared_.push_back({shell ? shell_arguments(arm.command) : *plain_arguments(arm.command),
                           environment_of(arm)});
      sizes_.push_back(
          start_size(prepared_.back().arguments, prepared_.back().environment.entries()));
    }
    ASSAY_TRY(reader_, MetricReader::of(measured_.experiment, interrupts_));
    sample_ = host_.sample();
    sample_block_ = measured_.next_block();
    return {};
  }

  // False if it was interrupted.
  base::Result<bool> run_block() {
    const Experiment& e = measured_.experiment;
    const std::int64_t block = measured_.next_block();
    const std::vector<std::string> pads = paddings(sizes_, e.seed, block);
    for (const std::size_t arm : order_of_block(e.seed, block, e.runs_per_block())) {
      if (interrupts_.happened()) return false;
      ASSAY_TRY(const bool completed, run_arm(block, arm, pads[arm]));
      if (!completed) return false;
    }
    ASSAY_TRY_VOID(check_host(block, kShortestSample));
    ASSAY_TRY_VOID(journal_.sync());
    // Without common steps there would never be a pair, and it would run until its time limit.
    const std::span<const ArmRun> runs = measured_.runs;
    const auto common =
        first_block_ ? check_common_steps(e, runs.last(e.runs_per_block())) : base::Result<void>();
    first_block_ = false;
    if (common) return true;
    arm_failed_ = true;
    return base::fail(common.error());
  }

  // Checks the host over the time since the last sample.
  base::Result<void> finish() {
    const std::int64_t next = measured_.next_block();
    return next > sample_block_ ? check_host(next - 1, kShortestSample / 2) : base::Result<void>();
  }

 private:
  // The cleanup hook runs however the run ended.
  base::Result<bool> run_arm(std::int64_t block, std::size_t arm, const std::string& pad) {
    ArmRun record{.run = measured_.next_run(),
                  .block = block,
                  .arm = arm,
                  .started = base::utc_millis_text(base::system_clock().wall_ns())};
    auto ran = run_prepared(record, pad);
    if (ran && *ran) {
      ASSAY_TRY_VOID(journal_.add(record));
      measured_.runs.push_back(record);
    } else if (!ran && arm_failed_) {
      measured_.failures.push_back({record.run, block, arm, record.started, ran.error().what});
      ASSAY_TRY_VOID(journal_.add(measured_.failures.back()));
    }
    // The first Ctrl-C ends the run, a second one the cleanup hook.
    interrupts_.consume();
    auto cleaned = hook(measured_.experiment.arm_of(arm).cleanup, "cleanup", record);
    if (!ran) return base::fail(std::move(ran).error());
    if (!cleaned) return base::fail(std::move(cleaned).error());
    return *ran && *cleaned;
  }

  base::Result<bool> run_prepared(ArmRun& record, const std::string& pad) {
    const Experiment& e = measured_.experiment;
    const std::string name = e.name_of(record.arm);
    ASSAY_TRY(const bool prepared, hook(e.arm_of(record.arm).prepare, "prepare", record));
    if (!prepared) return false;
    ASSAY_TRY_VOID(reader_->begin());
    ProcessRequest request{.arguments = prepared_[record.arm].arguments,
                           .environment = prepared_[record.arm].environment,
                           .out = journal_.output(record.run, name, "out"),
                           .err = journal_.output(record.run, name, "err"),
                           .timeout = e.timeout,
                           .time_output = e.steps.has_value() && reads_output(e)};
    request.environment.add(pad);
    const std::int64_t started_ns = base::system_clock().wall_ns();
    record.started = base::utc_millis_text(started_ns);
    const auto outcome = run_process(request, interrupts_);
    if (!outcome) return failed_run(record, outcome.error(), request);
    own_cpu_s_ += outcome->cpu_s;
    if (outcome->interrupted) {
      remove_if_empty(request.out);
      remove_if_empty(request.err);
      return false;
    }
    if (!outcome->ok()) {
      return failed_run(record, base::unfit_error("", outcome->how()), request);
    }
    record.wall_s = outcome->wall_s;
    record.cpu_s = outcome->cpu_s;
    if (auto read = reader_->read(*outcome, request, started_ns, record); !read) {
      if (interrupts_.happened()) return false;
      return failed_run(record, read.error(), request);
    }
    remove_if_empty(request.out);
    remove_if_empty(request.err);
    return true;
  }

  base::Result<bool> hook(const std::string& command, const char* what, const ArmRun& record) {
    if (command.empty()) return true;
    const std::string name = measured_.experiment.name_of(record.arm);
    const std::string extension = std::string(what) + ".";
    const ProcessRequest request{
        .arguments = shell_arguments(command),
        .environment = prepared_[record.arm].environment,
        .out = journal_.output(record.run, name, (extension + "out").c_str()),
        .err = journal_.output(record.run, name, (extension + "err").c_str())};
    const auto outcome = run_process(request, interrupts_);
    if (!outcome) return failed_run(record, outcome.error(), request);
    own_cpu_s_ += outcome->cpu_s;
    if (outcome->interrupted) return false;
    if (!outcome->ok()) {
      return failed_run(record, base::unfit_error("", fmt::format("--{} {}", what, outcome->how())),
                        request);
    }
    remove_if_empty(request.out);
    remove_if_empty(request.err);
    return true;
  }

  tl::unexpected<base::Error> failed_run(const ArmRun& record, const base::Error& error,
                                         const ProcessRequest& request) {
    arm_failed_ = true;
    const bool silent_err = remove_if_empty(request.err);
    const bool silent_out = remove_if_empty(request.out);
    const std::string what = error.where.empty() ? error.what : error.where + " " + error.what;
    const std::string output =
        silent_err && silent_out
            ? "it printed nothing"
            : "its output is in " + (silent_err ? request.out : request.err).string();
    return base::fail(base::unfit_error(where_failed(measured_.experiment, record.run, record.arm),
                                        fmt::format("{}; {}", what, output), error.hint));
  }

  // Whether the process wrote nothing to it.
  static bool remove_if_empty(const fs::path& file) {
    std::error_code error;
    const bool empty = fs::file_size(file, error) == 0;
    if (error) return true;  // it was not created
    if (empty) fs::remove(file, error);
    return empty;
  }

  base::Result<void> check_host(std::int64_t block, double shortest) {
    const std::int64_t now = base::system_clock().monotonic_ns();
    if (static_cast<double>(now - sample_.monotonic_ns) / 1e9 < shortest) return {};
    HostSample sample = host_.sample();
    const HostUsage usage = host_usage(sample_, sample, own_cpu_s_, host_.cpus());
    HostMark mark{sample_block_, block, host_problems(usage)};
    sample_ = std::move(sample);
    sample_block_ = block + 1;
    own_cpu_s_ = 0;
    if (mark.what.empty()) return {};
    ASSAY_TRY_VOID(journal_.add(mark));
    measured_.marks.push_back(std::move(mark));
    return {};
  }

  Measured& measured_;
  Journal& journal_;
  Host& host_;
  Interrupts& interrupts_;
  std::vector<PreparedArm> prepared_;
  std::vector<std::size_t> sizes_;
  std::optional<MetricReader> reader_;
  bool arm_failed_ = false;
  bool first_block_ = true;  // of this session
  HostSample sample_;
  std::int64_t sample_block_ = 0;
  double own_cpu_s_ = 0;
};

}  // namespace

base::Result<void> check_programs(const Experiment& experiment) {
  for (const Arm& arm : experiment.arms) {
    if (!arm.prepare.empty()) continue;
    if (const auto unknown = unknown_program(arm.command, environment_of(arm))) {
      return base::fail(base::unfit_error("arm " + arm.name, "command not found: " + *unknown));
    }
  }
  return {};
}

base::Result<ExperimentEnd> run_experiment(Measured& measured, Journal& journal, Host& host,
                                           Interrupts& interrupts,
                                           const ProgressCallback& callback) {
  ExperimentRunner runner(measured, journal, host, interrupts);
  ASSAY_TRY_VOID(runner.prepare());
  const base::Stopwatch watch;
  ExperimentProgress progress{.estimate = widest_estimate(measured)};
  const StopRule& rule = measured.experiment.stop;
  ExperimentEnd end{.stop = stop_after(rule, progress.estimate, watch.elapsed())};
  while (end.stop == StopReason::kNo) {
    auto completed = runner.run_block();
    if (!completed && !runner.arm_failed()) return base::fail(std::move(completed).error());
    if (!completed) {
      end.stop = StopReason::kFailed;
      end.failure = std::move(completed).error();
      break;
    }
    if (!*completed) break;
    ++progress.blocks;
    progress.elapsed = watch.elapsed();
    if (progress.blocks % (progress.estimate.pairs / kPairsPerSkip + 1) == 0 ||
        progress.elapsed >= rule.max_time) {
      progress.estimate = widest_estimate(measured);
      const base::Seconds per_block = progress.elapsed / static_cast<double>(progress.blocks);
      progress.left = time_left(rule, progress.estimate, progress.elapsed, per_block);
      end.stop = stop_after(rule, progress.estimate, progress.elapsed);
    }
    if (callback) callback(progress);
  }
  ASSAY_TRY_VOID(runner.finish());
  end.estimate = widest_estimate(measured);
  return end;
}

}  // namespace assay::compare
