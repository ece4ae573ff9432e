// The tables of `assay presets list`: one row per preset.
#include <fmt/format.h>

#include "assay/presets/print.h"
#include "spec/enum_names.h"
#include "spec/parameters.h"

namespace assay::cli {
namespace {

using base::grouped;
using base::Table;

constexpr const char* kUnknown = "-";

template <class T>
std::string text_or(const std::optional<T>& value) {
  return value ? base::to_text(*value) : kUnknown;
}

// Fits 80 columns without its last one.
Table model_table(const std::vector<spec::Loaded>& all) {
  Table table({"name", "parameters", "active", "layers", "dim", "q/kv", "ffn", "vocab", "ctx",
               "description"});
  table.align(5, base::Align::kRight);
  for (const spec::Loaded& loaded : all) {
    const auto& m = std::get<spec::ModelSpec>(loaded.spec);
    const auto parameters = spec::parameters_of(m);
    table.row({loaded.name, grouped(parameters.total), base::short_count(parameters.active),
               std::to_string(m.layers), std::to_string(m.dim),
               fmt::format("{}/{}", m.heads, m.kv_heads), std::to_string(m.ffn),
               std::to_string(m.vocab), std::to_string(m.context), loaded.description});
  }
  return table;
}

Table job_table(const std::vector<spec::Loaded>& all) {
  Table table({"name", "parameters", "tokens/step", "steps", "ranks", "device", "description"});
  for (const spec::Loaded& loaded : all) {
    const auto& job = std::get<spec::JobSpec>(loaded.spec);
    const auto parameters = spec::parameters_of(job.model);
    const auto steps = spec::training_steps(job);
    table.row({loaded.name, base::short_count(parameters.total), grouped(job.tokens_per_step()),
               steps ? grouped(*steps) : kUnknown, grouped(job.cluster.devices()),
               job.cluster.device.name, loaded.description});
  }
  return table;
}

Table cluster_table(const std::vector<spec::Loaded>& all) {
  Table table({"name", "nodes", "devices/node", "device", "memory", "link", "GB/s", "network",
               "GB/s node", "description"});
  for (const spec::Loaded& loaded : all) {
    const auto& c = std::get<spec::ClusterSpec>(loaded.spec);
    const auto rate = [](const std::optional<base::BytesPerSecond>& value) {
      return value ? fmt::format("{:.4g}", value->count() / 1e9) : kUnknown;
    };
    const std::string nodes = c.max_nodes > 1 ? fmt::format("1-{}", c.max_nodes) : "1";
    table.row({loaded.name, nodes, grouped(c.devices_per_node), c.device.name,
               text_or(c.device.memory), std::string(to_text(c.link.kind)), rate(c.link.bandwidth),
               std::string(to_text(c.network.kind)), rate(c.network.bandwidth),
               loaded.description});
  }
  table.align(1, base::Align::kRight);
  return table;
}

Table device_table(const std::vector<spec::Loaded>& all) {
  Table table({"name", "memory", "bandwidth", "bf16", "fp8", "fp32", "power", "description"});
  for (const spec::Loaded& loaded : all) {
    const auto& d = std::get<spec::DeviceSpec>(loaded.spec);
    table.row({loaded.name, text_or(d.memory), text_or(d.memory_bandwidth), text_or(d.bf16),
               text_or(d.fp8), text_or(d.fp32), text_or(d.power), loaded.description});
  }
  return table;
}

Table layout_table(const std::vector<spec::Loaded>& all) {
  Table table({"name", "ranks", "dp", "fsdp", "zero", "tp", "pp", "cp", "ep", "description"});
  for (const spec::Loaded& loaded : all) {
    const auto& l = std::get<spec::LayoutSpec>(loaded.spec);
    table.row({loaded.name, grouped(l.ranks.value_or(1)), grouped(l.dp), grouped(l.fsdp),
               grouped(l.zero), grouped(l.tp), grouped(l.pp), grouped(l.cp), grouped(l.ep),
               loaded.description});
  }
  return table;
}

}  // namespace

Table price_table(const spec::PriceList& prices) {
  Table table(
      {"provider", "offer", "devices", "market", "per hour", "per device", "date", "source"});
  for (const spec::PriceSpec& price : prices) {
    const double share = 1.0 / static_cast<double>(price.devices);
    const auto low = base::scale(price.per_hour.low, share);
    const auto high = base::scale(price.per_hour.high, share);
    table.row({price.provider, price.offer, fmt::format("{} x {}", price.devices, price.device),
               std::string(to_text(price.market)), spec::to_text(price.per_hour),
               low && high ? spec::to_text(spec::PriceRange{*low, *high}) : kUnknown,
               base::to_text(price.date), price.source});
  }
  table.align(4, base::Align::kRight).align(5, base::Align::kRight);
  return table;
}

Table list_table(spec::Kind kind, const std::vector<spec::Loaded>& all) {
  switch (kind) {
    case spec::Kind::kModel:
      return model_table(all);
    case spec::Kind::kJob:
      return job_table(all);
    case spec::Kind::kCluster:
      return cluster_table(all);
    case spec::Kind::kDevice:
      return device_table(all);
    case spec::Kind::kLayout:
      return layout_table(all);
    case spec::Kind::kPrices:
      break;
  }
  spec::PriceList rows;
  for (const spec::Loaded& loaded : all) {
    const auto& prices = std::get<spec::PriceList>(loaded.spec);
    rows.insert(rows.end(), prices.begin(), prices.end());
  }
  return price_table(rows);
}

}  // namespace assay::cli
