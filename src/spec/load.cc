#include "spec/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "spec/compose.h"
#include "spec/rules.h"
#include "spec/schema.h"
#include "spec/this_machine.h"
#include "spec/toml.h"

namespace assay::spec {
namespace {

base::Result<Kind> kind_of(const Value& document) {
  if (document.find("batch") != nullptr || document.find("train") != nullptr) return Kind::kJob;
  std::optional<Kind> only;
  for (const Kind kind : all_kinds()) {
    if (document.find(kind_section(kind)) == nullptr) continue;
    if (only) return Kind::kJob;
    only = kind;
  }
  if (only) return *only;
  return base::fail(base::usage_error(
      document.origin().source, "it has no section",
      "expected [model], [layout], [cluster], [device], [[price]], or the sections of a job"));
}

base::Result<void> complete_prices(PriceList& prices, const Value& document) {
  const Value* rows = document.find("price");
  if (rows != nullptr && prices.empty()) {
    return base::fail(base::usage_error(rows->origin().text(), "price: an empty list",
                                        "write [[price]] tables or remove it"));
  }
  for (std::size_t i = 0; i < prices.size(); ++i) {
    ASSAY_TRY_VOID(
        complete(prices[i], (*rows->get<Value::Array>())[i], fmt::format("price[{}]", i)));
  }
  return {};
}

base::Result<JobSpec> finish_job(Sections sections, const Value& document,
                                 const LoadOptions& options) {
  if (document.find("model") == nullptr) {
    return base::fail(base::usage_error(document.origin().source, "a job needs a model",
                                        "add [model] with extends = \"tiny\", for example"));
  }
  if (const Value* device = document.find("device")) {
    return base::fail(base::usage_error(device->origin().text(),
                                        "device: a job's device is part of its cluster",
                                        "write [cluster.device]"));
  }
  JobSpec job{.model = sections.model,
              .batch = sections.batch,
              .train = sections.train,
              .data = std::move(sections.data),
              .checkpoint = sections.checkpoint,
              .layout = sections.layout,
              .cluster = sections.cluster,
              .prices = std::move(sections.price)};
  ASSAY_TRY_VOID(
      complete(job, document, options.possible_layout,
               options.ranks_from_layout ||
                   (options.cpu_ranks_from_layout && job.cluster.device.kind == DeviceKind::kCpu)));
  ASSAY_TRY_VOID(complete_prices(job.prices, document));
  return job;
}

base::Result<AnySpec> finish(Kind kind, Sections sections, const Value& document,
                             const LoadOptions& options) {
  switch (kind) {
    case Kind::kModel:
      ASSAY_TRY_VOID(complete(sections.model, document));
      return sections.model;
    case Kind::kDevice:
      return sections.device;
    case Kind::kCluster:
      ASSAY_TRY_VOID(complete(sections.cluster, document));
      return sections.cluster;
    case Kind::kLayout:
      ASSAY_TRY_VOID(complete(sections.layout, document));
      return sections.layout;
    case Kind::kPrices:
      ASSAY_TRY_VOID(complete_prices(sections.price, document));
      return std::move(sections.price);
    case Kind::kJob:
      break;
  }
  ASSAY_TRY(JobSpec job, finish_job(std::move(sections), document, options));
  return job;
}

}  // namespace

base::Result<Loaded> load(std::string_view reference, const LoadOptions& options) {
  const auto this_machine = options.this_machine ? options.this_machine : this_machine_document;
  ASSAY_TRY(Composed composed, compose(reference, {options.overrides, this_machine}));
  Value& document = composed.document;
  // Before the kind is determined: a misspelt section must be reported as such.
  ASSAY_TRY(Sections sections, read_sections(document));
  ASSAY_TRY(const Kind kind, kind_of(document));
  if (kind == Kind::kJob && document.find("cluster") == nullptr) {
    ASSAY_TRY(Composed here, compose(kThisMachine, {{}, this_machine}));
    ASSAY_TRY(Sections found, read_sections(here.document));
    sections.cluster = std::move(found.cluster);
    document.get<Value::Table>()->emplace("cluster", *here.document.find("cluster"));
  }
  ASSAY_TRY(AnySpec spec, finish(kind, std::move(sections), document, options));

  Loaded loaded{composed.name, "", std::move(spec)};
  if (const Value* description = document.find("description")) {
    loaded.description = *description->get<std::string>();
  }
  return loaded;
}

namespace {

bool is_of_mixtures(std::string_view key) {
  constexpr std::string_view kKeys[] = {"moe_every",    "capacity",     "expert_ffn",
                                        "shared_ffn",   "router",       "normalise_router",
                                        "dense_layers", "router_scale", "router_groups"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

bool is_of_scaled_rope(std::string_view key) {
  return key == "rope_low" || key == "rope_high" || key == "rope_context";
}

}  // namespace

std::string model_toml(const ModelSpec& model) {
  std::string text = "[model]\n";
  const base::Json json = section_json(model);
  for (const auto& [key, value] : json.items()) {
    // Written out, these would describe features that the model does not have.
    if (!model.is_moe() && is_of_mixtures(key)) continue;
    if (key.starts_with("rope_") && model.positions != Positions::kRope) continue;
    if (is_of_scaled_rope(key) && model.rope_factor == 1) continue;
    text += fmt::format("{} = {}\n", key, value.dump());  // JSON's scalars are TOML's
  }
  return text;
}

base::Result<ModelSpec> model_from_toml(std::string_view text, const std::string& source) {
  ASSAY_TRY(const Value document, parse_toml(text, source));
  ASSAY_TRY(Sections sections, read_sections(document));
  ASSAY_TRY_VOID(complete(sections.model, document));
  return sections.model;
}

base::Result<PriceList> preset_prices() {
  PriceList all;
  for (const std::string& name : preset_names(Kind::kPrices)) {
    ASSAY_TRY(const Loaded loaded, load(name));
    const auto& rows = std::get<PriceList>(loaded.spec);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace assay::spec
