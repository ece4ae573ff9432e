#include "report/machine_tables.h"

#include <fmt/format.h>

#include "base/units.h"

namespace assay::report {
namespace {

using base::Json;

constexpr std::size_t kMostLinks = 28;  // every pair of eight

// The value of a key of a machine's JSON as text; empty if there is none.
std::string text_at(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return {};
    at = &at->at(key);
  }
  if (at->is_string()) return at->get<std::string>();
  if (at->is_number_integer()) return fmt::format("{}", at->get<std::int64_t>());
  if (at->is_number()) return fmt::format("{:g}", at->get<double>());
  return {};
}

const Json& list_at(const Json& json, const char* key) {
  static const Json nothing = Json::array();
  if (!json.is_object() || !json.contains(key) || !json.at(key).is_array()) return nothing;
  return json.at(key);
}

std::string bytes_at(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json.at(key).is_number()) return {};
  return base::to_text(base::Bytes(json.at(key).get<std::int64_t>()));
}

void add_row_of(PageTable& table, const char* name, std::string value) {
  if (!value.empty()) table.rows.push_back({Cell(name), Cell(std::move(value))});
}

std::string joined(const std::string& a, const char* between, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + between + b;
}

PageTable gpus_table(const Json& machine) {
  PageTable table{"GPUs", {"GPU", "name", "memory", "SMs", "PCIe", "NVLinks", "power limit"}};
  for (const Json& gpu : list_at(machine, "gpus")) {
    const std::string gen = text_at(gpu, {"pcie", "max_gen"});
    const std::string width = text_at(gpu, {"pcie", "max_width"});
    const std::string limit = text_at(gpu, {"power_limit_w"});
    table.rows.push_back({Cell(text_at(gpu, {"index"})), Cell(text_at(gpu, {"name"})),
                          Cell(bytes_at(gpu, "memory_bytes")), Cell(text_at(gpu, {"sm_count"})),
                          Cell(gen.empty() ? "" : fmt::format("gen {} x{}", gen, width)),
                          Cell(text_at(gpu, {"nvlinks"})),
                          Cell(limit.empty() ? "" : limit + " W")});
  }
  return table;
}

PageTable links_table(const Json& machine) {
  PageTable table{"How the GPUs are connected", {"GPUs", "PCIe", "NVLinks"}};
  const Json& links = list_at(machine, "gpu_links");
  for (const Json& link : links) {
    if (table.rows.size() == kMostLinks) break;
    table.rows.push_back({Cell(fmt::format("{} – {}", text_at(link, {"a"}), text_at(link, {"b"}))),
                          Cell(text_at(link, {"pcie"})), Cell(text_at(link, {"nvlinks"}))});
  }
  table.more = static_cast<std::int64_t>(links.size() - table.rows.size());
  return table;
}

}  // namespace

void add_machine_rows(PageTable& table, const Json& machine) {
  const std::string threads = joined(text_at(machine, {"cpu", "usable_threads"}), " of ",
                                     text_at(machine, {"cpu", "threads"}));
  add_row_of(table, "processors",
             joined(text_at(machine, {"cpu", "model"}), ", ",
                    threads.empty() ? "" : threads + " threads usable"));
  add_row_of(table, "memory", bytes_at(machine, "memory_bytes"));
  if (const std::size_t nodes = list_at(machine, "numa_nodes").size(); nodes > 0) {
    add_row_of(table, "NUMA nodes", fmt::format("{}", nodes));
  }
  add_row_of(
      table, "system",
      joined(joined(text_at(machine, {"os", "name"}), " ", text_at(machine, {"os", "version"})),
             ", Linux ", text_at(machine, {"os", "kernel"})));
  const bool no_gpus =
      machine.is_object() && machine.contains("gpus") && list_at(machine, "gpus").empty();
  add_row_of(table, "GPUs", no_gpus ? "none" : "");
  add_row_of(table, "NVIDIA driver",
             joined(text_at(machine, {"drivers", "nvidia"}), ", CUDA up to ",
                    text_at(machine, {"drivers", "cuda"})));
  for (const Json& nic : list_at(machine, "nics")) {
    add_row_of(table, "network", joined(text_at(nic, {"name"}), ", ", text_at(nic, {"kind"})));
  }
}

std::vector<PageTable> gpu_tables(const Json& machine) {
  std::vector<PageTable> tables;
  if (!list_at(machine, "gpus").empty()) tables.push_back(gpus_table(machine));
  if (!list_at(machine, "gpu_links").empty()) tables.push_back(links_table(machine));
  return tables;
}

}  // namespace assay::report
