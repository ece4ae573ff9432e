// Specs as JSON: the counterpart of print.cc.
#include "assay/presets/print.h"
#include "spec/parameters.h"
#include "spec/schema.h"

namespace assay::cli {
namespace {

using base::Json;

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
  json["steps"] = steps ? Json(*steps) : Json(nullptr);
  json["tokens"] = tokens ? Json(*tokens) : Json(nullptr);
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
