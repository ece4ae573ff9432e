#include "compare/conduct.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "compare/findings.h"
#include "compare/schedule.h"
#include "compare/steps.h"
#include "compare/stored.h"

namespace assay::compare {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kLargestOutput(std::int64_t{1} << 30U);
constexpr std::string_view kPadVariable = "ASSAY_COMPARE_PAD=";
// The kernel counts processor time in hundredths of a second: shorter stretches say nothing.
constexpr double kShortestStretch = 1.0;
// With many pairs another one changes little, and the estimate is not made anew for each.
constexpr std::int64_t kPairsPerLook = 100;

std::string_view variable_of(std::string_view setting) {
  return setting.substr(0, setting.find('=') + 1);
}

std::vector<std::string> environment_of(const Arm& arm) {
  std::vector<std::string> environment;
  const auto is_over = [&](std::string_view setting) {
    return std::any_of(arm.environment.begin(), arm.environment.end(), [&](const std::string& own) {
      return variable_of(own) == variable_of(setting);
    });
  };
  for (char** setting = environ; *setting != nullptr; ++setting) {
    const std::string_view text = *setting;
    if (!text.starts_with(kPadVariable) && !is_over(text)) environment.emplace_back(text);
  }
  environment.insert(environment.end(), arm.environment.begin(), arm.environment.end());
  return environment;
}

bool reads_output(const Experiment& e) {
  const auto in_output = [](const Metric& m) {
    return m.kind == MetricKind::kRegex || m.kind == MetricKind::kJson;
  };
  return in_output(e.metric) || (e.steps && in_output(*e.steps)) ||
         (e.quality && in_output(*e.quality));
}

bool reads_store(const Experiment& e) {
  const auto in_store = [](const Metric& m) { return m.kind == MetricKind::kStored; };
  return in_store(e.metric) || (e.steps && in_store(*e.steps)) ||
         (e.quality && in_store(*e.quality));
}

// An arm as it is started: what does not change from run to run.
struct Ready {
  std::vector<std::string> words;
  std::vector<std::string> environment;
};

class Conductor {
 public:
  Conductor(Measured& measured, Journal& journal, Host& host, const Interrupts& interrupts)
      : measured_(measured), journal_(journal), host_(host), interrupts_(interrupts) {}

  base::Result<void> prepare() {
    bool shell = false;
    for (const Arm& arm : measured_.experiment.arms) shell = shell || !plain_words(arm.command);
    for (std::size_t i = 0; i < measured_.experiment.runs_per_block(); ++i) {
      const Arm& arm = measured_.experiment.arm_of(i);
      // A shell costs time: all arms have one, or none.
      ready_.push_back(
          {shell ? shell_words(arm.command) : *plain_words(arm.command), environment_of(arm)});
      sizes_.push_back(start_size(ready_.back().words, ready_.back().environment));
    }
    if (reads_store(measured_.experiment)) {
      ASSAY_TRY(store_, StoredMetrics::open(measured_.experiment.directory));
    }
    stretch_ = host_.sample();
    stretch_block_ = measured_.next_block();
    return {};
  }

  // False: it was interrupted.
  base::Result<bool> run_block() {
    const Experiment& e = measured_.experiment;
    const std::int64_t block = measured_.next_block();
    const std::vector<std::string> pads = paddings(sizes_, e.seed, block);
    for (const std::size_t arm : order_of_block(e.seed, block, e.runs_per_block())) {
      if (interrupts_.happened()) return false;
      ASSAY_TRY(const bool went_on, run_arm(block, arm, pads[arm]));
      if (!went_on) return false;
    }
    ASSAY_TRY_VOID(judge_host(block, kShortestStretch));
    ASSAY_TRY_VOID(journal_.sync());
    return true;
  }

  // What the last stretch was like, however short.
  base::Result<void> finish() {
    const std::int64_t next = measured_.next_block();
    return next > stretch_block_ ? judge_host(next - 1, kShortestStretch / 2)
                                 : base::Result<void>();
  }

 private:
  base::Result<bool> run_arm(std::int64_t block, std::size_t arm, const std::string& pad) {
    const Experiment& e = measured_.experiment;
    const std::int64_t number = measured_.runs.empty() ? 1 : measured_.runs.back().run + 1;
    const std::string name = e.name_of(arm);
    ASSAY_TRY(const bool prepared, hook(e.arm_of(arm).prepare, "prepare", number, arm));
    if (!prepared) return false;
    if (store_) ASSAY_TRY_VOID(store_->remember());
    ProcessRequest request{.words = ready_[arm].words,
                           .environment = ready_[arm].environment,
                           .out = journal_.output(number, name, "out"),
                           .err = journal_.output(number, name, "err"),
                           .timeout = e.timeout,
                           .time_output = e.steps.has_value() && reads_output(e)};
    request.environment.push_back(pad);
    RunRecord record{.run = number,
                     .block = block,
                     .arm = arm,
                     .started = base::utc_millis_text(base::system_clock().wall_ns())};
    ASSAY_TRY(const ProcessOutcome outcome, run_process(request, interrupts_));
    our_cpu_s_ += outcome.cpu_s;
    if (outcome.interrupted) return false;
    if (!outcome.ok()) return base::fail(failed_run(record, outcome.how(), request));
    record.wall_s = outcome.wall_s;
    record.cpu_s = outcome.cpu_s;
    if (auto read = read_values(outcome, request, record); !read) {
      base::Error error = std::move(read).error();
      base::Error told = failed_run(record, error.what, request);
      told.hint = error.hint.empty() ? told.hint : error.hint + "; " + told.hint;
      return base::fail(std::move(told));
    }
    remove_if_empty(request.out);
    remove_if_empty(request.err);
    ASSAY_TRY_VOID(journal_.add(record));
    measured_.runs.push_back(std::move(record));
    return hook(e.arm_of(arm).cleanup, "cleanup", number, arm);
  }

  base::Result<bool> hook(const std::string& command, const char* what, std::int64_t number,
                          std::size_t arm) {
    if (command.empty()) return true;
    const std::string name = measured_.experiment.name_of(arm);
    const std::string extension = std::string(what) + ".";
    const ProcessRequest request{.words = shell_words(command),
                                 .environment = ready_[arm].environment,
                                 .out = journal_.output(number, name, (extension + "out").c_str()),
                                 .err = journal_.output(number, name, (extension + "err").c_str())};
    ASSAY_TRY(const ProcessOutcome outcome, run_process(request, interrupts_));
    our_cpu_s_ += outcome.cpu_s;
    if (outcome.interrupted) return false;
    if (!outcome.ok()) {
      return base::fail(failed_run({.run = number, .arm = arm},
                                   fmt::format("--{} {}", what, outcome.how()), request));
    }
    remove_if_empty(request.out);
    remove_if_empty(request.err);
    return true;
  }

  base::Result<void> read_values(const ProcessOutcome& outcome, const ProcessRequest& request,
                                 RunRecord& record) {
    const Experiment& e = measured_.experiment;
    std::string output;
    if (reads_output(e)) {
      ASSAY_TRY(output, base::read_file(request.out, kLargestOutput));
      ASSAY_TRY(const std::string errors, base::read_file(request.err, kLargestOutput));
      output += errors;
    }
    if (e.steps) {
      ASSAY_TRY(record.steps, steps_of(*e.steps, output));
      split_time(record.steps, e.step_seconds, outcome.moments, record);
      record.value = steady_step(record.steps);
    } else {
      ASSAY_TRY(record.value, value_of(e.metric, output, record));
    }
    if (!(record.value > 0)) {
      return base::fail(
          base::unfit_error("", fmt::format("'{}' is {}, and ratios are of numbers above 0",
                                            base::shortened(e.metric.text(), 100), record.value)));
    }
    if (e.quality) {
      ASSAY_TRY(record.quality, quality_of(*e.quality, output, record));
    }
    return {};
  }

  base::Result<std::vector<StepValue>> steps_of(const Metric& metric, std::string_view output) {
    if (metric.kind != MetricKind::kStored) return steps_in(metric, output);
    ASSAY_TRY(std::vector<StepValue> steps, store_->steps(metric.pattern));
    std::erase_if(steps, [](const StepValue& step) { return !(step.value > 0); });
    if (steps.empty()) {
      return base::fail(base::unfit_error(
          "", fmt::format("'{}' has no value above 0", base::shortened(metric.text(), 100))));
    }
    return steps;
  }

  base::Result<double> value_of(const Metric& metric, std::string_view output,
                                const RunRecord& record) {
    switch (metric.kind) {
      case MetricKind::kWall:
        return record.wall_s;
      case MetricKind::kCpu:
        return record.cpu_s;
      case MetricKind::kStored: {
        ASSAY_TRY(const std::vector<StepValue> steps, steps_of(metric, output));
        return steady_step(steps);
      }
      default:
        return value_in(metric, output);
    }
  }

  // What training ended with, where a time would be that of a usual step.
  base::Result<double> quality_of(const Metric& metric, std::string_view output,
                                  const RunRecord& record) {
    if (metric.kind != MetricKind::kStored) return value_of(metric, output, record);
    ASSAY_TRY(const std::vector<StepValue> steps, store_->steps(metric.pattern));
    return steps.back().value;
  }

  base::Error failed_run(const RunRecord& record, const std::string& what,
                         const ProcessRequest& request) const {
    std::error_code ignored;
    const bool said = fs::file_size(request.err, ignored) > 0 && !ignored;
    return base::unfit_error(
        fmt::format("run {}, arm {}", record.run, measured_.experiment.name_of(record.arm)),
        fmt::format("{}; its output is in {}", what, (said ? request.err : request.out).string()),
        fmt::format("{} runs are kept; go on with assay compare --resume {}", measured_.runs.size(),
                    base::shell_quoted(journal_.directory().string())));
  }

  static void remove_if_empty(const fs::path& file) {
    std::error_code ignored;
    if (fs::file_size(file, ignored) == 0 && !ignored) fs::remove(file, ignored);
  }

  base::Result<void> judge_host(std::int64_t block, double shortest) {
    const std::int64_t now = base::system_clock().monotonic_ns();
    if (static_cast<double>(now - stretch_.monotonic_ns) / 1e9 < shortest) return {};
    HostSample sample = host_.sample();
    const Stretch stretch = stretch_between(stretch_, sample, our_cpu_s_, host_.cpus());
    HostMark mark{stretch_block_, block, complaints(stretch)};
    stretch_ = std::move(sample);
    stretch_block_ = block + 1;
    our_cpu_s_ = 0;
    if (mark.what.empty()) return {};
    ASSAY_TRY_VOID(journal_.add(mark));
    measured_.marks.push_back(std::move(mark));
    return {};
  }

  Measured& measured_;
  Journal& journal_;
  Host& host_;
  const Interrupts& interrupts_;
  std::vector<Ready> ready_;
  std::vector<std::size_t> sizes_;
  std::optional<StoredMetrics> store_;
  HostSample stretch_;
  std::int64_t stretch_block_ = 0;
  double our_cpu_s_ = 0;
};

}  // namespace

base::Result<Stop> conduct(Measured& measured, Journal& journal, Host& host,
                           const Interrupts& interrupts, const Watcher& watcher) {
  Conductor conductor(measured, journal, host, interrupts);
  ASSAY_TRY_VOID(conductor.prepare());
  const base::Stopwatch watch;
  Standing standing{.estimate = widest_estimate(measured)};
  const StopRule& rule = measured.experiment.stop;
  Stop stop = stop_after(rule, standing.estimate, watch.elapsed());
  while (stop == Stop::kNo) {
    ASSAY_TRY(const bool went_on, conductor.run_block());
    if (!went_on) break;
    ++standing.blocks;
    standing.elapsed = watch.elapsed();
    if (standing.blocks % (standing.estimate.pairs / kPairsPerLook + 1) == 0 ||
        standing.elapsed >= rule.max_time) {
      standing.estimate = widest_estimate(measured);
      const base::Seconds per_block = standing.elapsed / static_cast<double>(standing.blocks);
      standing.left = time_left(rule, standing.estimate, standing.elapsed, per_block);
      stop = stop_after(rule, standing.estimate, standing.elapsed);
    }
    if (watcher) watcher(standing);
  }
  ASSAY_TRY_VOID(conductor.finish());
  return stop;
}

}  // namespace assay::compare
