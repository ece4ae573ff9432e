// The text of `assay presets show` and the one-line summary of `check`.
#include "print_spec.h"

#include <fmt/format.h>

#include "spec/enum_names.h"
#include "spec/parameters.h"
#include "spec/schema.h"

namespace assay::cli {
namespace {

using base::grouped;
using base::Table;

template <class T>
std::string section_text(const std::string& title, const T& section) {
  Table table({title, ""});
  table.align(1, base::Align::kLeft);
  for (spec::Row& row : spec::section_rows(section)) {
    table.row({std::move(row.key), std::move(row.value)});
  }
  return table.text() + "\n";
}

std::string shape(const spec::ParameterGroup& group) {
  if (group.role == spec::Role::kVector) return grouped(group.cols);
  return fmt::format("{} x {}", grouped(group.rows), grouped(group.cols));
}

std::string parameter_text(const spec::ModelSpec& model) {
  const auto parameters = spec::count_parameters(model).value_or(spec::Parameters{});
  Table table({"parameters", "shape", "tensors", "elements"});
  table.align(1, base::Align::kRight);
  for (const spec::ParameterGroup& group : parameters.groups) {
    table.row({group.name, shape(group), grouped(group.count), grouped(group.parameters())});
  }
  table.rule();
  table.row({"total", "", "", grouped(parameters.total)});
  if (parameters.active != parameters.total) {
    table.row({"active per token", "", "", grouped(parameters.active)});
  }
  table.row({"multiplying activations", "", "", grouped(parameters.matmul)});
  return table.text() + "\n";
}

std::string spec_sections(const spec::ModelSpec& model) {
  return section_text("model", model) + parameter_text(model);
}
std::string spec_sections(const spec::DeviceSpec& device) {
  return section_text("device", device);
}
std::string spec_sections(const spec::ClusterSpec& cluster) {
  return section_text("cluster", cluster);
}
std::string spec_sections(const spec::LayoutSpec& layout) {
  return section_text("layout", layout);
}
std::string spec_sections(const spec::PriceList& prices) {
  return price_table(prices).text();
}
std::string spec_sections(const spec::JobSpec& job) {
  return section_text("batch", job.batch) + section_text("train", job.train) +
         spec_sections(job.layout) + spec_sections(job.cluster) + spec_sections(job.model);
}

std::string describe(const spec::ModelSpec& model) {
  const auto parameters = spec::count_parameters(model).value_or(spec::Parameters{});
  return fmt::format("{} parameters, {} layers of {}", grouped(parameters.total), model.layers,
                     model.dim);
}
std::string describe(const spec::DeviceSpec& device) {
  return device.name;
}
std::string describe(const spec::ClusterSpec& cluster) {
  return fmt::format("{} x {} x {}", cluster.nodes, cluster.devices_per_node, cluster.device.name);
}
std::string describe(const spec::LayoutSpec& layout) {
  return fmt::format("{} ranks", grouped(layout.ranks.value_or(1)));
}
std::string describe(const spec::PriceList& prices) {
  return fmt::format("{} prices", prices.size());
}
std::string describe(const spec::JobSpec& job) {
  const auto steps = spec::training_steps(job);
  return fmt::format(
      "{}; {} tokens per step{}; on {}", describe(job.model), grouped(job.tokens_per_step()),
      steps ? fmt::format(", {} steps", grouped(*steps)) : "", describe(job.cluster));
}

}  // namespace

std::string kind_plural(spec::Kind kind) {
  return kind == spec::Kind::kPrices ? "prices" : std::string(spec::to_text(kind)) + "s";
}

std::string summary(const spec::Loaded& loaded) {
  return std::visit([](const auto& one) { return describe(one); }, loaded.spec);
}

spec::PriceList offers_for(const spec::Loaded& loaded, const spec::PriceList& prices) {
  const auto* job = std::get_if<spec::JobSpec>(&loaded.spec);
  const auto* cluster =
      job != nullptr ? &job->cluster : std::get_if<spec::ClusterSpec>(&loaded.spec);
  if (cluster == nullptr) return {};
  spec::PriceList offers = job != nullptr ? job->prices : spec::PriceList{};
  for (const spec::PriceSpec& price : prices) {
    const auto device = spec::load(price.device);
    if (device && std::get<spec::DeviceSpec>(device->spec).name == cluster->device.name) {
      offers.push_back(price);
    }
  }
  return offers;
}

std::string spec_text(const spec::Loaded& loaded, const spec::PriceList& prices) {
  std::string text =
      fmt::format("{} ({}): {}\n", loaded.name, spec::to_text(loaded.kind()), summary(loaded));
  if (!loaded.description.empty()) text += loaded.description + "\n";
  text += "\n";
  text += std::visit([](const auto& one) { return spec_sections(one); }, loaded.spec);
  const spec::PriceList offers = offers_for(loaded, prices);
  if (!offers.empty()) text += price_table(offers).text();
  return text;
}

}  // namespace assay::cli
