// What may interrupt a run on rented machines, as figures with their sources, and what follows for
// one run: its checkpoint interval, time and cost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/money.h"
#include "base/units.h"
#include "plan/cost/money.h"
#include "plan/failures/spot.h"

namespace assay::plan {

struct Risks {
  SourcedNumber device_mtbf;      // s, of one device with its share of a node
  SourcedNumber checkpoint_rate;  // bytes per second and node
  SourcedNumber restart;          // s, before the state is read
  SourcedNumber outage;           // s, until a lost machine is replaced
  SourcedNumber spot_available;   // s, until spot machines are preempted: all of a run's at once
  SourcedNumber spot_gone;        // s, until they are available again
  SourcedNumber spot_notice;      // s, before preemption
};

Risks default_risks();

// A row of the table of assumptions.
struct Assumption {
  std::string what;
  std::string value;
  std::string source;
};
std::vector<Assumption> listed(const Risks& risks);

// One run: its useful time, its machines, and the size of its state.
struct RunOnMachines {
  base::Seconds work;
  base::Seconds step;
  std::int64_t nodes = 1;
  std::int64_t devices = 1;
  double state_bytes = 0;
};

// Checkpoints at the interval that minimizes lost time.
Resilience resilience_of(const RunOnMachines& run, const Risks& risks);

// The same with spot machines: `on_demand` is what the policy falls back to.
SpotRun spot_run_of(const RunOnMachines& run, const Risks& risks, base::Money on_demand_per_hour,
                    base::Money spot_per_hour, std::optional<base::Seconds> deadline);

}  // namespace assay::plan
