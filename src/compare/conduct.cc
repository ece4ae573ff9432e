#include "compare/conduct.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/process/environment.h"
#include "base/text.h"
#include "compare/findings.h"
#include "compare/reading.h"
#include "compare/schedule.h"

namespace assay::compare {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPadVariable = "ASSAY_COMPARE_PAD";
// The kernel counts processor time in hundredths of a second: shorter stretches say nothing.
constexpr double kShortestStretch = 1.0;
// With many pairs another one changes little, and the estimate is not made anew for each.
constexpr std::int64_t kPairsPerLook = 100;

base::Environment environment_of(const Arm& arm) {
  base::Environment environment = base::Environment::from_current();
  environment.unset(kPadVariable);
  for (const std::string& setting : arm.environment) {
    const std::size_t equals = setting.find('=');
    environment.set(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return environment;
}

// An arm as it is started: what does not change from run to run.
struct Ready {
  std::vector<std::string> words;
  base::Environment environment;
};

class Conductor {
 public:
  Conductor(Measured& measured, Journal& journal, Host& host, Interrupts& interrupts)
      : measured_(measured), journal_(journal), host_(host), interrupts_(interrupts) {}

  // So an error of run_block() is about a command, not about us.
  [[nodiscard]] bool arm_failed() const { return arm_failed_; }

  base::Result<void> prepare() {
    bool shell = false;
    for (const Arm& arm : measured_.experiment.arms) shell = shell || !plain_words(arm.command);
    for (std::size_t i = 0; i < measured_.experiment.runs_per_block(); ++i) {
      const Arm& arm = measured_.experiment.arm_of(i);
      // A shell costs time: all arms have one, or none.
      ready_.push_back(
          {shell ? shell_words(arm.command) : *plain_words(arm.command), environment_of(arm)});
      sizes_.push_back(start_size(ready_.back().words, ready_.back().environment.entries()));
    }
    ASSAY_TRY(reading_, Reading::of(measured_.experiment, interrupts_));
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
    // An experiment without pairs would go on until its time is over.
    const std::span<const ArmRun> runs = measured_.runs;
    const auto common =
        first_ ? check_common_steps(e, runs.last(e.runs_per_block())) : base::Result<void>();
    first_ = false;
    if (common) return true;
    arm_failed_ = true;
    return base::fail(common.error());
  }

  // What the last stretch was like, however short.
  base::Result<void> finish() {
    const std::int64_t next = measured_.next_block();
    return next > stretch_block_ ? judge_host(next - 1, kShortestStretch / 2)
                                 : base::Result<void>();
  }

 private:
  // Whatever happens to a run that was prepared, it is cleaned up after.
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
    // A first Ctrl-C ends the run, a second one this.
    interrupts_.hear();
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
    ASSAY_TRY_VOID(reading_->begin());
    ProcessRequest request{.words = ready_[record.arm].words,
                           .environment = ready_[record.arm].environment,
                           .out = journal_.output(record.run, name, "out"),
                           .err = journal_.output(record.run, name, "err"),
                           .timeout = e.timeout,
                           .time_output = e.steps.has_value() && reads_output(e)};
    request.environment.add(pad);
    const std::int64_t started_ns = base::system_clock().wall_ns();
    record.started = base::utc_millis_text(started_ns);
    const auto outcome = run_process(request, interrupts_);
    if (!outcome) return failed_run(record, outcome.error(), request);
    our_cpu_s_ += outcome->cpu_s;
    if (outcome->interrupted) return false;
    if (!outcome->ok()) {
      return failed_run(record, base::unfit_error("", outcome->how()), request);
    }
    record.wall_s = outcome->wall_s;
    record.cpu_s = outcome->cpu_s;
    if (auto read = reading_->read(*outcome, request, started_ns, record); !read) {
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
        .words = shell_words(command),
        .environment = ready_[record.arm].environment,
        .out = journal_.output(record.run, name, (extension + "out").c_str()),
        .err = journal_.output(record.run, name, (extension + "err").c_str())};
    const auto outcome = run_process(request, interrupts_);
    if (!outcome) return failed_run(record, outcome.error(), request);
    our_cpu_s_ += outcome->cpu_s;
    if (outcome->interrupted) return false;
    if (!outcome->ok()) {
      return failed_run(record, base::unfit_error("", fmt::format("--{} {}", what, outcome->how())),
                        request);
    }
    remove_if_empty(request.out);
    remove_if_empty(request.err);
    return true;
  }

  // What went wrong, with where and what to do about it.
  tl::unexpected<base::Error> failed_run(const ArmRun& record, const base::Error& error,
                                         const ProcessRequest& request) {
    arm_failed_ = true;
    std::error_code ignored;
    const bool said = fs::file_size(request.err, ignored) > 0 && !ignored;
    const std::string what = error.where.empty() ? error.what : error.where + " " + error.what;
    const std::string go_on =
        fmt::format("{} runs are kept; go on with assay compare --resume {}", measured_.runs.size(),
                    base::shell_quoted(journal_.directory().string()));
    return base::fail(base::unfit_error(
        fmt::format("run {}, arm {}", record.run, measured_.experiment.name_of(record.arm)),
        fmt::format("{}; its output is in {}", what, (said ? request.err : request.out).string()),
        error.hint.empty() ? go_on : error.hint + "; " + go_on));
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
  Interrupts& interrupts_;
  std::vector<Ready> ready_;
  std::vector<std::size_t> sizes_;
  std::optional<Reading> reading_;
  bool arm_failed_ = false;
  bool first_ = true;  // block of this sitting
  HostSample stretch_;
  std::int64_t stretch_block_ = 0;
  double our_cpu_s_ = 0;
};

}  // namespace

base::Result<Conducted> conduct(Measured& measured, Journal& journal, Host& host,
                                Interrupts& interrupts, const Watcher& watcher) {
  Conductor conductor(measured, journal, host, interrupts);
  ASSAY_TRY_VOID(conductor.prepare());
  const base::Stopwatch watch;
  Standing standing{.estimate = widest_estimate(measured)};
  const StopRule& rule = measured.experiment.stop;
  Conducted conducted{.stop = stop_after(rule, standing.estimate, watch.elapsed())};
  while (conducted.stop == Stop::kNo) {
    auto went_on = conductor.run_block();
    if (!went_on && !conductor.arm_failed()) return base::fail(std::move(went_on).error());
    if (!went_on) {
      conducted.stop = Stop::kFailed;
      conducted.failure = std::move(went_on).error();
    }
    if (!went_on || !*went_on) break;
    ++standing.blocks;
    standing.elapsed = watch.elapsed();
    if (standing.blocks % (standing.estimate.pairs / kPairsPerLook + 1) == 0 ||
        standing.elapsed >= rule.max_time) {
      standing.estimate = widest_estimate(measured);
      const base::Seconds per_block = standing.elapsed / static_cast<double>(standing.blocks);
      standing.left = time_left(rule, standing.estimate, standing.elapsed, per_block);
      conducted.stop = stop_after(rule, standing.estimate, standing.elapsed);
    }
    if (watcher) watcher(standing);
  }
  ASSAY_TRY_VOID(conductor.finish());
  conducted.estimate = widest_estimate(measured);
  return conducted;
}

}  // namespace assay::compare
