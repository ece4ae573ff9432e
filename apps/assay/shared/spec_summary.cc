#include "assay/shared/spec_summary.h"

#include <fmt/format.h>

#include <set>

#include "base/units.h"
#include "spec/parameters.h"

namespace assay::cli {
namespace {

using base::grouped;

std::string describe(const spec::ModelSpec& model) {
  const auto parameters = spec::parameters_of(model);
  return fmt::format("{} parameters, {} layers of {}", grouped(parameters.total), model.layers,
                     model.dim);
}
std::string describe(const spec::DeviceSpec& device) {
  return device.name;
}
std::string describe(const spec::ClusterSpec& cluster) {
  return fmt::format("{} node{} of {} x {}", cluster.nodes, cluster.nodes == 1 ? "" : "s",
                     cluster.devices_per_node, cluster.device.name);
}
std::string describe(const spec::LayoutSpec& layout) {
  return fmt::format("{} ranks", grouped(layout.ranks.value_or(1)));
}
std::string describe(const spec::PriceList& prices) {
  return fmt::format("{} price{}", prices.size(), prices.size() == 1 ? "" : "s");
}
std::string describe(const spec::JobSpec& job) {
  const auto steps = spec::training_steps(job);
  return fmt::format(
      "{}; {} tokens per step{}; on {}", describe(job.model), grouped(job.tokens_per_step()),
      steps ? fmt::format(", {} steps", grouped(*steps)) : "", describe(job.cluster));
}

}  // namespace

std::string summary(const spec::Loaded& loaded) {
  return std::visit([](const auto& one) { return describe(one); }, loaded.spec);
}

spec::PriceList offers_for(const spec::Loaded& loaded, const spec::PriceList& prices) {
  const auto* job = std::get_if<spec::JobSpec>(&loaded.spec);
  const auto* cluster =
      job != nullptr ? &job->cluster : std::get_if<spec::ClusterSpec>(&loaded.spec);
  if (cluster == nullptr) return {};
  // A cluster's device may be written out or changed, so it is known by its name only.
  std::set<std::string> same_device;
  for (const std::string& name : spec::preset_names(spec::Kind::kDevice)) {
    const auto device = spec::load(name);
    if (device && std::get<spec::DeviceSpec>(device->spec).name == cluster->device.name) {
      same_device.insert(name);
    }
  }
  spec::PriceList offers = job != nullptr ? job->prices : spec::PriceList{};
  for (spec::PriceSpec& own : offers) own.network = true;  // of the job's own cluster
  for (const spec::PriceSpec& price : prices) {
    if (same_device.contains(price.device)) offers.push_back(price);
  }
  return offers;
}

}  // namespace assay::cli
