#include "plan/failures/risks.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::plan {
namespace {

using base::Seconds;

constexpr double kDay = 86'400;

// Not above the work, not below a step.
Seconds useful_interval(Seconds checkpoint, Seconds mtbf, const RunOnMachines& run) {
  const Seconds best = best_interval(checkpoint, mtbf);
  return std::max(run.step, std::min(best, run.work));
}

}  // namespace

Risks default_risks() {
  return {
      .device_mtbf = {unit_mtbf(16'384, Seconds(54 * kDay), 419).count(),
                      "Llama 3: 419 interruptions of 16,384 GPUs in 54 days (Meta, 2024)"},
      .checkpoint_rate = {1e9,
                          "Llama 3: storage of 2 TB/s for 2,048 nodes (Meta, 2024); training is "
                          "assumed to pause meanwhile"},
      .restart = {300, "assumed: time to notice, start, connect and compile"},
      .outage = {900, "assumed: time to get and prepare another machine"},
      .spot_available = {8 * 3600.0, "assumed: spot markets differ widely"},
      .spot_gone = {3600, "assumed: spot markets differ widely"},
      .spot_notice = {0, "assumed: some providers give 30 s to 2 min"},
  };
}

std::vector<Assumption> listed(const Risks& risks) {
  const auto time = [](const char* what, const SourcedNumber& input) {
    return Assumption{what, base::to_text(Seconds(input.value)), input.source};
  };
  return {
      time("mean time between failures of one device", risks.device_mtbf),
      {"writing and reading checkpoints, per node",
       base::to_text(base::BytesPerSecond(risks.checkpoint_rate.value)),
       risks.checkpoint_rate.source},
      time("restart, without reading the checkpoint", risks.restart),
      time("outage after a failure", risks.outage),
      time("time until spot machines are preempted", risks.spot_available),
      time("time until they are available again", risks.spot_gone),
      time("warning before preemption", risks.spot_notice),
  };
}

Resilience resilience_of(const RunOnMachines& run, const Risks& risks) {
  const Seconds saving(run.state_bytes /
                       (risks.checkpoint_rate.value * static_cast<double>(run.nodes)));
  Resilience r;
  r.mtbf = gang_mtbf(Seconds(risks.device_mtbf.value), run.devices);
  r.checkpoint = saving;
  r.restart = Seconds(risks.restart.value) + saving;
  r.outage = Seconds(risks.outage.value);
  r.interval = useful_interval(r.checkpoint, r.mtbf, run);
  return r;
}

SpotRun spot_run_of(const RunOnMachines& run, const Risks& risks, base::Money on_demand_per_hour,
                    base::Money spot_per_hour, std::optional<Seconds> deadline) {
  SpotRun spot{.work = run.work, .deadline = deadline, .resilience = resilience_of(run, risks)};
  const Seconds taken(risks.spot_available.value);
  spot.market = {.on_demand_per_hour = on_demand_per_hour,
                 .spot_per_hour = spot_per_hour,
                 .available = taken,
                 .gone = Seconds(risks.spot_gone.value),
                 .notice = Seconds(risks.spot_notice.value),
                 .interval = useful_interval(spot.resilience.checkpoint,
                                             either_mtbf(spot.resilience.mtbf, taken), run)};
  return spot;
}

}  // namespace assay::plan
