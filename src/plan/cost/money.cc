#include "plan/cost/money.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::plan {
namespace {

// World averages, because the place is not known.
constexpr double kWorldPue = 1.56;
constexpr const char* kWorldPueSource = "assumed: average of the Uptime Institute's survey of 2024";
constexpr double kWorldGrid = 473;
constexpr const char* kWorldGridSource = "assumed: world average of 2024 (Ember)";

template <class Make>
base::Result<spec::PriceRange> each_end(const spec::PriceRange& range, Make make) {
  ASSAY_TRY(const base::Money low, make(range.low));
  ASSAY_TRY(const base::Money high, make(range.high));
  return spec::PriceRange{low, high};
}

base::Result<OfferCost> cost_of(const spec::PriceSpec& offer, std::int64_t devices,
                                base::Seconds time) {
  OfferCost cost{.offer = offer};
  cost.rented = (devices + offer.devices - 1) / offer.devices;
  cost.idle_devices = cost.rented * offer.devices - devices;
  const auto rented = static_cast<double>(cost.rented);
  ASSAY_TRY(cost.per_hour, each_end(offer.per_hour, [&](const base::Money& price) {
              return base::scale(price, rented);
            }));
  ASSAY_TRY(cost.total, each_end(cost.per_hour, [&](const base::Money& price) {
              return base::cost(price, time);
            }));
  return cost;
}

SourcedNumber given_or(const std::optional<double>& given, double fallback, const char* source) {
  return given ? SourcedNumber{*given, "given"} : SourcedNumber{fallback, source};
}

}  // namespace

bool is_connected(const spec::PriceSpec& offer, std::int64_t devices) {
  return offer.network || devices <= offer.devices;
}

base::Result<std::vector<OfferCost>> costs_of(const spec::PriceList& offers,
                                              const spec::ClusterSpec& cluster,
                                              base::Seconds time) {
  if (offers.empty()) {
    return base::fail(
        base::usage_error("price", fmt::format("no price is known for '{}'", cluster.device.name),
                          "add a [[price]] to the job; its keys: assay presets keys price"));
  }
  std::vector<OfferCost> costs;
  for (const spec::PriceSpec& offer : offers) {
    if (!is_connected(offer, cluster.devices())) continue;
    ASSAY_TRY(OfferCost cost, cost_of(offer, cluster.devices(), time));
    costs.push_back(std::move(cost));
  }
  if (costs.empty()) {
    return base::fail(base::usage_error(
        "price",
        fmt::format("no offer for {} devices of '{}' is known to connect its machines by a network",
                    cluster.devices(), cluster.device.name),
        "add a [[price]] to the job"));
  }
  // Currencies are kept apart: no rate is guessed.
  std::stable_sort(costs.begin(), costs.end(), [](const OfferCost& a, const OfferCost& b) {
    const base::Money& left = a.total.low;
    const base::Money& right = b.total.low;
    return left.currency() != right.currency() ? left.currency() < right.currency()
                                               : left.micros() < right.micros();
  });
  return costs;
}

double Energy::devices_kwh() const {
  return watts_per_device.value * static_cast<double>(devices) * time.count() / 3600 / 1000;
}

base::Result<Energy> energy_of(const spec::ClusterSpec& cluster, base::Seconds time,
                               const EnergyChoices& choices) {
  Energy energy{.devices = cluster.devices(),
                .time = time,
                .pue = given_or(choices.pue, kWorldPue, kWorldPueSource),
                .grid_g_per_kwh = given_or(choices.grid_g_per_kwh, kWorldGrid, kWorldGridSource)};
  if (choices.watts_per_device) {
    energy.watts_per_device = {choices.watts_per_device->count(), "given"};
  } else if (cluster.device.power) {
    energy.watts_per_device = {cluster.device.power->count(),
                               "the device's power limit: an upper bound"};
  } else {
    return base::fail(base::usage_error("cluster.device.power",
                                        fmt::format("not known for '{}'", cluster.device.name),
                                        "set it, or give --watts as measured"));
  }
  return energy;
}

}  // namespace assay::plan
