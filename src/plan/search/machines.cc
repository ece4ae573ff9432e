#include "plan/search/machines.h"

#include <set>

namespace assay::plan {
namespace {

// A cluster's device may be written out or changed, so it is known by its name only.
base::Result<spec::PriceList> offers_of_device(const spec::DeviceSpec& device,
                                               const spec::PriceList& prices) {
  std::set<std::string> same_device;
  for (const std::string& name : spec::preset_names(spec::Kind::kDevice)) {
    ASSAY_TRY(const spec::Loaded loaded, spec::load(name));
    if (std::get<spec::DeviceSpec>(loaded.spec).name == device.name) same_device.insert(name);
  }
  spec::PriceList offers;
  for (const spec::PriceSpec& price : prices) {
    if (same_device.contains(price.device)) offers.push_back(price);
  }
  return offers;
}

// The same machines, however many.
bool is_same_kind(spec::ClusterSpec a, const spec::ClusterSpec& b) {
  a.nodes = b.nodes;
  a.max_nodes = b.max_nodes;
  return a == b;
}

}  // namespace

base::Result<std::vector<Machines>> machines_for(const spec::JobSpec& job, const std::string& name,
                                                 const spec::PriceList& prices, bool presets) {
  std::vector<Machines> all;
  ASSAY_TRY(spec::PriceList offers, offers_of_device(job.cluster.device, prices));
  // The job's own prices are of its own cluster.
  for (auto own = job.prices.rbegin(); own != job.prices.rend(); ++own) {
    offers.insert(offers.begin(), *own)->network = true;
  }
  all.push_back({name, job.cluster, std::move(offers)});
  if (!presets) return all;
  for (const std::string& preset : spec::preset_names(spec::Kind::kCluster)) {
    if (preset == spec::kThisMachine) continue;
    ASSAY_TRY(const spec::Loaded loaded, spec::load(preset));
    const auto& cluster = std::get<spec::ClusterSpec>(loaded.spec);
    if (cluster.device.kind != spec::DeviceKind::kGpu) continue;
    if (is_same_kind(cluster, job.cluster)) continue;
    ASSAY_TRY(spec::PriceList rented, offers_of_device(cluster.device, prices));
    if (!rented.empty()) all.push_back({preset, cluster, std::move(rented)});
  }
  return all;
}

}  // namespace assay::plan
