#include "observe/wire/gpu_region.h"

namespace assay::wire {
namespace {

constexpr const char* kQuantityNames[] = {
    "kernels",         "kernels_ex",      "kernels_cooperative", "graphs",
    "graph_kernels",   "captured_kernels", "copies_to_device",   "copies_to_host",
    "copies_on_device", "copies_to_peer", "copies_unified",      "copies_array",
    "sets",            "allocs_device",   "allocs_async",        "allocs_virtual",
    "allocs_managed",  "allocs_array",    "allocs_host",         "allocs_graph",
    "frees",           "refused_allocs",  "syncs_context",       "syncs_stream",
    "syncs_event",     "contexts",        "modules",             "nccl_groups"};
static_assert(sizeof kQuantityNames / sizeof kQuantityNames[0] == kGpuQuantities);

constexpr const char* kOperationNames[] = {"all-reduce", "reduce-scatter", "all-gather",
                                           "all-to-all", "broadcast",      "reduce",
                                           "gather",     "scatter",        "send",
                                           "receive"};
static_assert(sizeof kOperationNames / sizeof kOperationNames[0] == kGpuOperations);

constexpr const char* kTypeNames[] = {"int8",    "uint8",   "int32",   "uint32", "int64", "uint64",
                                      "float16", "float32", "float64", "bf16",   "fp8e4", "fp8e5"};

}  // namespace

const char* name_of(GpuQuantity quantity) {
  return kQuantityNames[static_cast<std::size_t>(quantity)];
}

const char* name_of(GpuOperation operation) {
  return kOperationNames[static_cast<std::size_t>(operation)];
}

const char* nccl_type_name(unsigned type) {
  return type < sizeof kTypeNames / sizeof kTypeNames[0] ? kTypeNames[type] : "?";
}

}  // namespace assay::wire
