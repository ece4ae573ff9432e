// The text of `assay presets show`.
#include "assay/presets/print.h"

#include <fmt/format.h>

#include "assay/shared/spec_summary.h"
#include "base/text.h"
#include "spec/enum_names.h"
#include "spec/parameters.h"
#include "spec/schema.h"

namespace assay::cli {
namespace {

using base::grouped;
using base::Json;
using base::Table;

template <class T>
void print_section(const Session& session, const std::string& title, const T& section) {
  Table table({title, ""});
  table.align(1, base::Align::kLeft);
  for (spec::Row& row : spec::section_rows(section)) {
    table.row({std::move(row.key), std::move(row.value)});
  }
  session.print("\n");
  session.print(table);
}

std::string shape(const spec::ParameterGroup& group) {
  if (group.role == spec::Role::kVector) return grouped(group.cols);
  return fmt::format("{} x {}", grouped(group.rows), grouped(group.cols));
}

void print_parameters(const Session& session, const spec::ModelSpec& model) {
  const auto parameters = spec::parameters_of(model);
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
  session.print("\n");
  session.print(table);
}

void print_one(const Session& session, const spec::ModelSpec& model) {
  print_section(session, "model", model);
  print_parameters(session, model);
}
void print_one(const Session& session, const spec::DeviceSpec& device) {
  print_section(session, "device", device);
}
void print_one(const Session& session, const spec::ClusterSpec& cluster) {
  print_section(session, "cluster", cluster);
}
void print_one(const Session& session, const spec::LayoutSpec& layout) {
  print_section(session, "layout", layout);
}
void print_one(const Session& session, const spec::PriceList& prices) {
  session.print("\n");
  session.print(price_table(prices));
}
void print_one(const Session& session, const spec::JobSpec& job) {
  print_one(session, job.model);
  print_section(session, "batch", job.batch);
  print_section(session, "train", job.train);
  print_section(session, "data", job.data);
  print_section(session, "checkpoint", job.checkpoint);
  print_one(session, job.layout);
  print_one(session, job.cluster);
}

void add_model(Json& json, const spec::ModelSpec& model) {
  const spec::Parameters parameters = spec::parameters_of(model);
  json["parameters"] = parameters.total;
  json["active_parameters"] = parameters.active;
  json["matmul_parameters"] = parameters.matmul;
  json["groups"] = spec::to_json(parameters.groups);
  json["model"] = spec::section_json(model);
}

Json price_rows(const spec::PriceList& prices) {
  Json rows = Json::array();
  for (const spec::PriceSpec& price : prices) rows.push_back(spec::section_json(price));
  return rows;
}

void add_spec(Json& json, const spec::ModelSpec& model) {
  add_model(json, model);
}
void add_spec(Json& json, const spec::DeviceSpec& device) {
  json["device"] = spec::section_json(device);
}
void add_spec(Json& json, const spec::ClusterSpec& cluster) {
  json["devices"] = cluster.devices();
  json["cluster"] = spec::section_json(cluster);
}
void add_spec(Json& json, const spec::LayoutSpec& layout) {
  json["layout"] = spec::section_json(layout);
}
void add_spec(Json& json, const spec::PriceList& prices) {
  json["prices"] = price_rows(prices);
}
void add_spec(Json& json, const spec::JobSpec& job) {
  json["tokens_per_step"] = job.tokens_per_step();
  const auto steps = spec::training_steps(job);
  const auto tokens = spec::training_tokens(job);
  json["steps"] = base::or_null(steps);
  json["tokens"] = base::or_null(tokens);
  json["devices"] = job.cluster.devices();
  add_model(json, job.model);
  json["batch"] = spec::section_json(job.batch);
  json["train"] = spec::section_json(job.train);
  json["data"] = spec::section_json(job.data);
  json["checkpoint"] = spec::section_json(job.checkpoint);
  json["layout"] = spec::section_json(job.layout);
  json["cluster"] = spec::section_json(job.cluster);
}

}  // namespace

void print_spec(const Session& session, const spec::Loaded& loaded, const spec::PriceList& prices) {
  session.print(fmt::format("{} ({}): {}\n", base::printable(loaded.name),
                            spec::to_text(loaded.kind()), base::printable(summary(loaded))));
  if (!loaded.description.empty()) session.print(base::printable(loaded.description) + "\n");
  std::visit([&](const auto& one) { print_one(session, one); }, loaded.spec);
  const spec::PriceList offers = offers_for(loaded, prices);
  if (!offers.empty()) {
    session.print("\noffers of this device\n");
    session.print(price_table(offers));
  }
}

base::Json list_json(const std::vector<spec::Loaded>& all, const spec::PriceList& prices) {
  Json rows = Json::array();
  for (const spec::Loaded& loaded : all) rows.push_back(spec_json(loaded, prices));
  return rows;
}

base::Json spec_json(const spec::Loaded& loaded, const spec::PriceList& prices) {
  Json json = {{"kind", spec::to_text(loaded.kind())},
               {"name", loaded.name},
               {"description", loaded.description}};
  std::visit([&](const auto& one) { add_spec(json, one); }, loaded.spec);
  const bool rented = loaded.kind() == spec::Kind::kJob || loaded.kind() == spec::Kind::kCluster;
  if (rented) json["prices"] = price_rows(offers_for(loaded, prices));
  return json;
}

}  // namespace assay::cli
