#include "lineage/refresh/refresh.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/process/interrupts.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "lineage/graph/disk_files.h"
#include "lineage/refresh/running_stage.h"
#include "lineage/refresh/stage_order.h"
#include "observe/collect/gate/gate.h"
#include "store/run_reader.h"
#include "store/shared.h"

namespace assay::lineage {
namespace {

// Without pidfds: how often to check whether a stage has exited.
constexpr int kLook_ms = 50;

// Two refreshes would run the same stages twice, at the same time.
base::Result<base::UniqueFd> lock_project(const store::Store& store) {
  const std::filesystem::path file = store.location().directory / "refresh.lock";
  base::UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                           store::is_shared(store.location().directory) ? 0660 : 0600));
  if (!fd.valid()) return base::fail(base::system_error(file, "cannot be written", errno));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return base::fail(base::unfit_error("refresh", "another one is running in this project",
                                        "wait until it has ended"));
  }
  return fd;
}

class Refresher {
 public:
  Refresher(store::Store& store, const RefreshRequest& request, base::Interrupts& interrupts)
      : store_(store), request_(request), interrupts_(interrupts) {}

  base::Result<RefreshReport> run() {
    ASSAY_TRY_VOID(update_states());
    add_stale();
    if (!request_.keep_going) {
      for (const PlannedRefresh& one : queue_) {
        if (one.obstacle.empty()) continue;
        return base::fail(base::failed_error(fmt::format("stage {}", one.stage),
                                             one.obstacle + how_to_go_on(one.stage)));
      }
    }
    do {
      do {
        ASSAY_TRY_VOID(start_ready_stages());
        ASSAY_TRY_VOID(wait_for_something());
      } while (!running_.empty() || waiting());
      // Another stage may have become stale: what a run writes is known only when it has ended.
      ASSAY_TRY_VOID(update_states());
      add_stale();
    } while (waiting());
    for (const PlannedRefresh& one : queue_) {
      if (progress_[one.stage] == Progress::kWaiting) {
        give_up(one, StageOutcome::kNotRun, why_stopped_);
      }
    }
    report_.no_stages = states_->stages.runs().empty();
    for (RefreshedStage& stage : report_.stages) {
      if (stage.outcome == StageOutcome::kFailed) continue;
      const auto at = index_.find(stage.stage);
      if (at != index_.end()) stage.run = states_->stages.runs()[at->second].id;
    }
    report_.stale = plan_refresh(*states_, request_.targets, request_.edited);
    report_.replaced = replaced_stages(*states_, request_.targets);
    report_.unsure = unsure_stages(*states_, request_.targets);
    return std::move(report_);
  }

 private:
  enum class Progress { kWaiting, kRunning, kEnded };

  // Reads the stages' state from store and disk. Files of running stages are not read.
  base::Result<void> update_states() {
    std::set<std::string> being_written;
    for (const auto& stage : running_) {
      const auto at = index_.find(stage->stage());
      if (at == index_.end()) continue;
      for (const store::Output& output : states_->stages.runs()[at->second].outputs) {
        being_written.insert(output.path);
      }
    }
    ASSAY_TRY(StageStates states, load_stage_states(store_, [&](const std::string& path) {
                return being_written.contains(path);
              }));
    order_.emplace(states.stages);
    states_.emplace(std::move(states));
    index_.clear();
    for (std::size_t i = 0; i < states_->stages.runs().size(); ++i) {
      index_[states_->stages.runs()[i].stage] = i;
    }
    changed_ = false;
    return {};
  }

  // Adds each stage at most once: one that is stale again after it has run would run for ever.
  void add_stale() {
    for (PlannedRefresh& one : plan_refresh(*states_, request_.targets, request_.edited)) {
      if (progress_.emplace(one.stage, Progress::kWaiting).second) queue_.push_back(std::move(one));
    }
  }

  base::Result<void> start_ready_stages() {
    for (const PlannedRefresh& one : queue_) {
      if (progress_[one.stage] != Progress::kWaiting) continue;
      handle_interrupt();
      if (stopping_ || running_.size() >= request_.jobs) break;
      bool must_wait = false;
      const std::string blocker = blocker_of(one.stage, must_wait);
      if (must_wait) continue;
      if (!blocker.empty() || !one.obstacle.empty()) {
        give_up(one, StageOutcome::kBlocked, blocker.empty() ? one.obstacle : blocker);
      } else {
        ASSAY_TRY_VOID(start_unless_fresh(one));
      }
    }
    return {};
  }

  // Why the stage can no longer run, if so; sets `must_wait` if other stages come first.
  std::string blocker_of(std::int64_t stage, bool& must_wait) {
    const auto at = index_.find(stage);
    if (at == index_.end()) return {};  // `assay run` will report that the stage is gone
    for (const std::size_t before : order_->before(at->second)) {
      const std::int64_t number = states_->stages.runs()[before].stage;
      if (const auto failed = failed_.find(number); failed != failed_.end()) {
        return fmt::format("stage {} {}", number,
                           failed->second == StageOutcome::kFailed ? "failed" : "was not run");
      }
      const auto found = progress_.find(number);
      must_wait = must_wait || (found != progress_.end() && found->second != Progress::kEnded);
    }
    return {};
  }

  // A stage is fresh if the stages before it made what it needs as it was: the content of its
  // inputs, or the files that it lists.
  base::Result<void> start_unless_fresh(const PlannedRefresh& one) {
    if (changed_) ASSAY_TRY_VOID(update_states());
    const auto now = index_.find(one.stage);
    if (now != index_.end() && states_->reasons[now->second].empty()) {
      give_up(one, StageOutcome::kUnneeded, "its inputs are unchanged");
      return {};
    }
    ASSAY_TRY(const std::string obstacle, obstacle_now(one.stage));
    if (!obstacle.empty()) {
      give_up(one, StageOutcome::kBlocked, obstacle);
      request_.progress(
          fmt::format("stage {}: {}{}", one.stage, obstacle, how_to_go_on(one.stage)));
      if (!request_.keep_going) stop(fmt::format("stage {} was not run", one.stage));
      return {};
    }
    const std::string name = fmt::format("@{}", one.stage);
    request_.progress(fmt::format("{} {}", name, one.command));
    ASSAY_TRY(const std::vector<store::RunRecord> newest, store::list_runs(store_, {.limit = 1}));
    ASSAY_TRY(RunningStage stage,
              RunningStage::start({.program = request_.program,
                                   .project = store_.location().project,
                                   .stage = one.stage,
                                   .overwrite = request_.edited == EditedOutputs::kOverwrite,
                                   .last_run_before = newest.empty() ? 0 : newest.front().id,
                                   .output = request_.output,
                                   .label = request_.jobs > 1 ? name + " | " : ""}));
    running_.push_back(std::make_unique<RunningStage>(std::move(stage)));
    progress_[one.stage] = Progress::kRunning;
    return {};
  }

  // Since the plan was made, an earlier stage may have written to a file of this one, or somebody
  // may have edited an output.
  base::Result<std::string> obstacle_now(std::int64_t stage) {
    for (const PlannedRefresh& now : plan_refresh(*states_, request_.targets, request_.edited)) {
      if (now.stage == stage && !now.obstacle.empty()) return now.obstacle;
    }
    const auto at = index_.find(stage);
    if (at == index_.end()) return std::string();
    ASSAY_TRY(DiskFiles files, DiskFiles::open(store_));
    return edit_obstacle(states_->stages, at->second,
                         edited_outputs(states_->stages, at->second, files.queries()),
                         request_.edited);
  }

  base::Result<void> wait_for_something() {
    if (running_.empty()) return {};
    std::vector<pollfd> waiting = {{interrupts_.fd(), POLLIN, 0}};
    bool blind = false;
    for (const auto& stage : running_) {
      // Closed descriptors are -1, which poll(2) ignores.
      waiting.push_back({stage->output_descriptor(), POLLIN, 0});
      waiting.push_back({stage->exit_descriptor(), POLLIN, 0});
      blind = blind || stage->exit_descriptor() < 0;
    }
    ::poll(waiting.data(), waiting.size(), blind ? kLook_ms : -1);
    handle_interrupt();
    for (const auto& stage : running_) stage->copy_output();
    for (auto stage = running_.begin(); stage != running_.end();) {
      const auto code = (*stage)->exit_code();
      if (code) ASSAY_TRY_VOID(finish(**stage, *code));
      stage = code ? running_.erase(stage) : stage + 1;
    }
    return {};
  }

  void handle_interrupt() {
    const auto interrupt = interrupts_.consume();
    if (!interrupt) return;
    for (const auto& stage : running_) stage->interrupt(*interrupt);
    report_.interrupted_by = interrupt->number;
    stop("interrupted");
  }

  // The run of this stage that has just failed: it belongs to no stage, so it is found by what ran.
  base::Result<std::optional<store::RunRecord>> failed_run(const RunningStage& stage) {
    const auto at = index_.find(stage.stage());
    if (at == index_.end()) return std::nullopt;
    const store::RunRecord& current = states_->stages.runs()[at->second];
    ASSAY_TRY(std::vector<store::RunRecord> runs,
              store::list_runs(store_, {.limit = static_cast<std::int64_t>(2 * request_.jobs + 20),
                                        .status = store::RunStatus::kFailed}));
    for (store::RunRecord& run : runs) {
      if (run.id <= stage.last_run_before()) break;
      if (run.command == current.command && run.directory == current.directory) return run;
    }
    return std::nullopt;
  }

  base::Result<void> finish(const RunningStage& stage, int exit_code) {
    const std::int64_t number = stage.stage();
    const auto planned = std::find_if(queue_.begin(), queue_.end(),
                                      [&](const auto& one) { return one.stage == number; });
    RefreshedStage ended{.stage = number,
                         .command = planned->command,
                         .outcome = exit_code == 0 ? StageOutcome::kDone : StageOutcome::kFailed,
                         .exit_code = exit_code,
                         .signal = {},
                         .duration_s = stage.duration_s(),
                         .why = {}};
    if (exit_code != 0) {
      ASSAY_TRY(const auto run, failed_run(stage));
      if (run) {
        ended.run = run->id;
        ended.signal = run->signal;
      }
    }
    request_.progress(
        fmt::format("@{} {} in {}{}", number,
                    exit_code == 0 ? "done" : fmt::format("failed ({})", failure_text(ended)),
                    base::to_text(base::Seconds(stage.duration_s())),
                    exit_code == 0 ? "" : how_to_go_on(number)));
    report_.stages.push_back(std::move(ended));
    progress_[number] = Progress::kEnded;
    changed_ = true;
    if (exit_code == 0) return {};
    failed_.emplace(number, StageOutcome::kFailed);
    if (!request_.keep_going) stop(fmt::format("stage {} failed", number));
    return {};
  }

  void give_up(const PlannedRefresh& one, StageOutcome outcome, const std::string& why) {
    progress_[one.stage] = Progress::kEnded;
    if (outcome == StageOutcome::kBlocked) failed_.emplace(one.stage, outcome);
    report_.stages.push_back(
        {.stage = one.stage, .command = one.command, .outcome = outcome, .signal = {}, .why = why});
  }

  // For the line about a stage that keeps others from being started; empty: all that are left
  // depend on it, or they are started anyway.
  [[nodiscard]] std::string how_to_go_on(std::int64_t stage) const {
    const auto failed = index_.find(stage);
    const bool others = std::any_of(progress_.begin(), progress_.end(), [&](const auto& one) {
      if (one.first == stage || one.second != Progress::kWaiting) return false;
      const auto at = index_.find(one.first);
      if (at == index_.end() || failed == index_.end()) return false;
      return !order_->with_makers({at->second}).contains(failed->second);
    });
    if (request_.keep_going || stopping_ || !others) return {};
    return "; --keep-going runs the stages that do not depend on it";
  }

  void stop(const std::string& why) {
    if (!stopping_) why_stopped_ = why;
    stopping_ = true;
  }

  // Whether a stage can still be started.
  [[nodiscard]] bool waiting() const {
    return !stopping_ && std::any_of(progress_.begin(), progress_.end(), [](const auto& one) {
      return one.second == Progress::kWaiting;
    });
  }

  store::Store& store_;
  const RefreshRequest& request_;
  base::Interrupts& interrupts_;
  std::optional<StageStates> states_;
  std::optional<StageOrder> order_;
  std::map<std::int64_t, std::size_t> index_;  // of a stage's number in states_
  bool changed_ = false;                       // since update_states()
  std::vector<PlannedRefresh> queue_;
  std::map<std::int64_t, Progress> progress_;  // of the queue
  std::vector<std::unique_ptr<RunningStage>> running_;
  std::map<std::int64_t, StageOutcome> failed_;  // or blocked
  bool stopping_ = false;
  std::string why_stopped_;
  RefreshReport report_;
};

}  // namespace

std::string failure_text(const RefreshedStage& stage) {
  return stage.signal ? fmt::format("signal {}", *stage.signal)
                      : fmt::format("{}", stage.exit_code);
}

std::string_view to_text(StageOutcome outcome) {
  switch (outcome) {
    case StageOutcome::kDone:
      return "done";
    case StageOutcome::kFailed:
      return "failed";
    case StageOutcome::kUnneeded:
      return "unneeded";
    case StageOutcome::kBlocked:
      return "blocked";
    case StageOutcome::kNotRun:
      return "not run";
  }
  return {};
}

base::Result<RefreshReport> refresh(store::Store& store, const RefreshRequest& request) {
  if (store.is_read_only()) {
    return base::fail(base::unfit_error(store.location().directory, "cannot be written",
                                        "runs could not be recorded"));
  }
  if (collect::under_another_gate()) {
    return base::fail(base::unfit_error(
        "refresh", "it is inside another `assay run`, so its runs would not be recorded",
        "run it outside of `assay run`"));
  }
  ASSAY_TRY(const base::UniqueFd locked, lock_project(store));
  ASSAY_TRY(base::Interrupts interrupts, base::Interrupts::watch());
  return Refresher(store, request, interrupts).run();
}

}  // namespace assay::lineage
