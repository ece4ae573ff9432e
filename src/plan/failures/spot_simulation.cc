#include "plan/failures/spot_simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::plan {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

// Segments of work and checkpoint, after a restart.
struct Pace {
  double restart;
  double interval;
  double checkpoint;

  [[nodiscard]] double needed(double work) const {
    return restart + work + std::ceil(work / interval) * checkpoint;
  }
  // Work that is on disk when an attempt breaks off.
  [[nodiscard]] double saved(double seconds) const {
    return std::floor(std::max(0.0, seconds - restart) / (interval + checkpoint)) * interval;
  }
  // The same if it ends with a last checkpoint, which the time includes.
  [[nodiscard]] double saved_with_last_checkpoint(double seconds) const {
    const double working = std::max(0.0, seconds - restart - checkpoint);
    const double segment = interval + checkpoint;
    const double segments = std::floor(working / segment);
    return segments * interval + std::min(interval, working - segments * segment);
  }
  // Work per second, in the long run.
  [[nodiscard]] double rate() const { return interval / (interval + checkpoint); }
};

class SpotPlay {
 public:
  SpotPlay(const SpotRun& run, SpotPolicy policy, base::Draws draws)
      : run_(run),
        policy_(policy),
        draws_(draws),
        work_(run.work.count()),
        deadline_(run.deadline ? run.deadline->count() : kForever) {
    const Resilience& r = run.resilience;
    on_demand_ = {r.restart.count(), r.interval.count(), r.checkpoint.count()};
    spot_ = {r.restart.count(), run.market.interval.count(), r.checkpoint.count()};
    first_window();
  }

  SimulatedRun simulated() {
    while (done_ < work_) {
      while (now_ >= window_end_) next_window();
      if (policy_ == SpotPolicy::kOnDemand || now_ >= last_moment()) {
        rent_on_demand(kForever);
      } else if (now_ >= window_begin_) {
        rent_spot();
      } else if (policy_ == SpotPolicy::kSpot || now_ < falls_behind()) {
        wait();
      } else {
        rent_on_demand(end_of_on_demand());
      }
    }
    result_.seconds = now_;
    return result_;
  }

 private:
  // The state of the market at a random moment.
  void first_window() {
    const double available = run_.market.available.count();
    const double gone = run_.market.gone.count();
    const bool there = draws_.uniform() * (available + gone) <= available;
    window_begin_ = there ? 0 : draws_.exponential(gone);
    window_end_ = window_begin_ + draws_.exponential(available);
  }

  void next_window() {
    window_begin_ = window_end_ + draws_.exponential(run_.market.gone.count());
    window_end_ = window_begin_ + draws_.exponential(run_.market.available.count());
  }

  [[nodiscard]] double until_hardware_fails() {
    const double mtbf = run_.resilience.mtbf.count();
    return std::isinf(mtbf) ? kForever : draws_.exponential(mtbf);
  }

  // Time that a run on demand from now on would have to spare.
  [[nodiscard]] double slack() const { return deadline_ - now_ - on_demand_.needed(work_ - done_); }

  // The most that a preemption can waste: a restart, a segment, and one checkpoint more than on
  // demand.
  [[nodiscard]] double risk() const {
    return spot_.restart + spot_.interval + 2 * spot_.checkpoint;
  }

  // From when on only on-demand machines are certain to meet the deadline.
  [[nodiscard]] double last_moment() const {
    if (policy_ != SpotPolicy::kUniformProgress) return kForever;
    return now_ + slack() - risk();
  }

  // How long spot machines may be kept: work on them may need more checkpoints than on demand,
  // which uses up the slack.
  [[nodiscard]] double longest_on_spot() const {
    if (policy_ != SpotPolicy::kUniformProgress) return kForever;
    const double lost = spot_.checkpoint * (1 - spot_.interval / on_demand_.interval);
    if (lost <= 0) return kForever;
    const double segments = std::floor(std::max(0.0, slack() - risk()) / lost) + 1;
    return spot_.restart + segments * (spot_.interval + spot_.checkpoint);
  }

  // When the share of the deadline that has passed exceeds the share of the work that is done.
  [[nodiscard]] double falls_behind() const { return done_ * deadline_ / work_; }

  void wait() {
    if (policy_ == SpotPolicy::kSpot) {
      now_ = window_begin_;
      return;
    }
    now_ = std::min({window_begin_, falls_behind(), last_moment()});
  }

  // When the share of the work that is done has caught up and spot machines are available.
  [[nodiscard]] double end_of_on_demand() {
    const double gain = on_demand_.rate() - work_ / deadline_;
    if (gain <= 0) return kForever;
    const double begin = (now_ + on_demand_.restart) * on_demand_.rate();
    const double caught_up = (begin - done_) / gain + on_demand_.checkpoint;
    while (window_end_ <= caught_up) next_window();
    return std::max(caught_up, window_begin_);
  }

  void rent_on_demand(double until) {
    const double needed = on_demand_.needed(work_ - done_);
    const double fails = until_hardware_fails();
    const double stays = until - now_;
    const double seconds = std::min({needed, fails, stays});
    now_ = seconds == stays ? until : now_ + seconds;
    result_.on_demand_seconds += seconds;
    if (seconds == needed) {
      done_ = work_;
    } else if (seconds == fails) {
      done_ += on_demand_.saved(seconds);
      break_down(result_.on_demand_seconds);
    } else {
      done_ += on_demand_.saved_with_last_checkpoint(seconds);
    }
  }

  void rent_spot() {
    const double needed = spot_.needed(work_ - done_);
    const double fails = until_hardware_fails();
    const double stays = window_end_ - now_;
    const double kept = longest_on_spot();
    const double seconds = std::min({needed, fails, stays, kept});
    now_ = seconds == stays ? window_end_ : now_ + seconds;
    result_.spot_seconds += seconds;
    if (seconds == needed) {
      done_ = work_;
    } else if (seconds == fails) {
      done_ += spot_.saved(seconds);
      break_down(result_.spot_seconds);
    } else if (seconds == kept) {
      done_ += spot_.saved_with_last_checkpoint(seconds);
    } else {
      const bool warned =
          run_.market.notice >= run_.resilience.checkpoint && run_.market.notice.count() > 0;
      done_ += warned ? spot_.saved_with_last_checkpoint(seconds) : spot_.saved(seconds);
      result_.preemptions += 1;
    }
  }

  // Machines are held, and paid for, while one of them is replaced.
  void break_down(double& paid) {
    now_ += run_.resilience.outage.count();
    paid += run_.resilience.outage.count();
  }

  const SpotRun& run_;
  SpotPolicy policy_;
  base::Draws draws_;
  double work_;
  double deadline_;
  Pace on_demand_{};
  Pace spot_{};
  double now_ = 0;
  double done_ = 0;          // work that is on disk
  double window_begin_ = 0;  // the present or next time with spot machines
  double window_end_ = 0;
  SimulatedRun result_;
};

}  // namespace

SimulatedRun simulate(const SpotRun& run, SpotPolicy policy, base::Draws draws) {
  return SpotPlay(run, policy, draws).simulated();
}

}  // namespace assay::plan
