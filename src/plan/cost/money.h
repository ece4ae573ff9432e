// What a run costs: hours from the time of a step, money by every offer of the cluster's device,
// energy and carbon. Every input is in the result, with where it came from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "spec/cluster.h"
#include "spec/load.h"

namespace assay::plan {

struct RunTime {
  base::Seconds step;
  std::int64_t steps = 0;
  double useful = 1;  // of the time that is paid for: the rest is restarts, checkpoints, lost work

  [[nodiscard]] base::Seconds total() const {
    return base::Seconds(step.count() * static_cast<double>(steps) / useful);
  }
};

// One offer, rented as often as the cluster needs it. A range of prices is a range of costs.
struct OfferCost {
  spec::PriceSpec offer;
  std::int64_t rented = 1;        // times the offer, which is taken whole
  std::int64_t idle_devices = 0;  // paid for and not used
  spec::PriceRange per_hour;      // for all that is rented
  spec::PriceRange total;
};

// Whether so many devices of an offer can train together: they are one machine, or a network
// between several is known.
bool is_connected(const spec::PriceSpec& offer, std::int64_t devices);

// Cheapest first. `offers` are those of the cluster's device; none at all, or none whose machines
// are connected, is an error that says what to set.
base::Result<std::vector<OfferCost>> costs_of(const spec::PriceList& offers,
                                              const spec::ClusterSpec& cluster, base::Seconds time);

// A number that was assumed or given, with its source.
struct SourcedNumber {
  double value = 0;
  std::string source;
};

struct EnergyChoices {
  std::optional<base::Watts> watts_per_device;  // default: the device's power limit
  std::optional<double> pue;                    // of the building: all its power over the machines'
  std::optional<double> grid_g_per_kwh;         // of CO2
};

// Of the devices alone: what processors, memory and fans of the nodes draw is not known.
struct Energy {
  SourcedNumber watts_per_device;
  std::int64_t devices = 0;
  base::Seconds time;
  SourcedNumber pue;
  SourcedNumber grid_g_per_kwh;

  [[nodiscard]] double devices_kwh() const;
  [[nodiscard]] double building_kwh() const { return devices_kwh() * pue.value; }
  [[nodiscard]] double carbon_kg() const { return building_kwh() * grid_g_per_kwh.value / 1000; }
};

// A device of unknown power is an error that says what to set.
base::Result<Energy> energy_of(const spec::ClusterSpec& cluster, base::Seconds time,
                               const EnergyChoices& choices);

}  // namespace assay::plan
