// Machine as JSON, for --json and for the run records of the store.
#include "machine/machine.h"
#include "machine/parse.h"

namespace assay::machine {
namespace {

using base::Json;

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}
Json count_or_null(int count) {
  return count == 0 ? Json() : Json(count);
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class Tag, class Rep>
Json or_null(const std::optional<base::Quantity<Tag, Rep>>& value) {
  return value ? Json(value->count()) : Json();
}

Json bytes_or_null(base::Bytes value) {
  return value.count() == 0 ? Json() : Json(value.count());
}

Json cpu_json(const Cpu& cpu) {
  return {{"model", text_or_null(cpu.model)},
          {"sockets", count_or_null(cpu.sockets)},
          {"cores", count_or_null(cpu.cores)},
          {"threads", count_or_null(cpu.threads)},
          {"allowed_threads", count_or_null(cpu.allowed_threads)},
          {"quota_threads", or_null(cpu.quota_threads)},
          {"usable_threads", count_or_null(cpu.usable_threads())},
          {"features", cpu.features}};
}

Json numa_json(const NumaNode& node) {
  return {{"id", node.id},
          {"cpus", format_cpu_list(node.cpus)},
          {"memory_bytes", bytes_or_null(node.memory)},
          {"distances", node.distances}};
}

Json gpu_json(const Gpu& gpu) {
  Json compute;
  if (gpu.compute) {
    compute = std::to_string(gpu.compute->major) + "." + std::to_string(gpu.compute->minor);
  }
  return {{"index", gpu.index},
          {"name", text_or_null(gpu.name)},
          {"uuid", text_or_null(gpu.uuid)},
          {"pci_bus_id", text_or_null(gpu.pci_bus_id)},
          {"memory_bytes", or_null(gpu.memory)},
          {"numa_node", or_null(gpu.numa_node)},
          {"pcie",
           {{"gen", or_null(gpu.pcie.gen)},
            {"width", or_null(gpu.pcie.width)},
            {"max_gen", or_null(gpu.pcie.max_gen)},
            {"max_width", or_null(gpu.pcie.max_width)}}},
          {"nvlinks", or_null(gpu.nvlinks)},
          {"nvlink_rate_bytes_per_s", or_null(gpu.nvlink_rate)},
          {"power_limit_w", or_null(gpu.power_limit)},
          {"sm_count", or_null(gpu.sm_count)},
          {"compute_capability", std::move(compute)}};
}

Json link_json(const GpuLink& link) {
  return {{"a", link.a},
          {"b", link.b},
          {"pcie", to_text(link.pcie)},
          {"nvlinks", link.nvlinks},
          {"nvswitch", link.nvswitch}};
}

Json nic_json(const Nic& nic) {
  return {{"name", nic.name},
          {"port", nic.port},
          {"interface", text_or_null(nic.interface)},
          {"kind", to_text(nic.kind)},
          {"rate_bytes_per_s", or_null(nic.rate)},
          {"up", or_null(nic.up)},
          {"numa_node", or_null(nic.numa_node)},
          {"pci_bus_id", text_or_null(nic.pci_bus_id)}};
}

Json drivers_json(const Drivers& drivers) {
  Json modules = Json::object();
  for (const auto& [name, version] : drivers.modules) modules[name] = text_or_null(version);
  return {{"nvidia", text_or_null(drivers.nvidia)},
          {"cuda", text_or_null(drivers.cuda)},
          {"modules", std::move(modules)}};
}

template <class T>
Json array_json(const std::vector<T>& items, Json (*item_json)(const T&)) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(item_json(item));
  return array;
}

}  // namespace

Json to_json(const Machine& machine) {
  return {{"hostname", text_or_null(machine.hostname)},
          {"os",
           {{"name", text_or_null(machine.os.name)},
            {"version", text_or_null(machine.os.version)},
            {"kernel", text_or_null(machine.os.kernel)}}},
          {"cpu", cpu_json(machine.cpu)},
          {"memory_bytes", bytes_or_null(machine.memory)},
          {"memory_limit_bytes", or_null(machine.memory_limit)},
          {"numa_nodes", array_json(machine.numa_nodes, numa_json)},
          {"gpu_source", to_text(machine.gpu_source)},
          {"gpus", array_json(machine.gpus, gpu_json)},
          {"gpu_links", array_json(machine.gpu_links, link_json)},
          {"nics", array_json(machine.nics, nic_json)},
          {"drivers", drivers_json(machine.drivers)},
          {"notes", machine.notes}};
}

}  // namespace assay::machine
