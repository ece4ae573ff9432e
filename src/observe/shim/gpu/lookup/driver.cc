// The functions of the driver, NCCL and NVML that are wrapped or called.
#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/lookup/finder.h"
#include "observe/shim/gpu/region/region.h"

extern "C" {

// For stubs, defined in stubs.cc; initially they point to code that finds the driver.
#define STUB(symbol, name, version, per_thread, quantity, bytes, scale)
#define FUNCTION(symbol, name, version, per_thread) \
  constinit std::atomic<void*> assay_gpu_real_##symbol{nullptr};
#define NCCL(symbol) constinit std::atomic<void*> assay_gpu_real_##symbol{nullptr};
#define NVML NCCL
#include "observe/shim/gpu/entries.inc"
#include "observe/shim/gpu/nvml_entries.inc"
#undef STUB
#undef FUNCTION
#undef NCCL
#undef NVML

// The wrappers; only their addresses are used here.
#define STUB(symbol, name, version, per_thread, quantity, bytes, scale) \
  ASSAY_EXPORTED extern char assay_gpu_wrapper_##symbol[] asm(#symbol);
#define FUNCTION(symbol, name, version, per_thread) \
  ASSAY_EXPORTED extern char assay_gpu_wrapper_##symbol[] asm(#symbol);
#define NCCL(symbol) ASSAY_EXPORTED extern char assay_gpu_wrapper_##symbol[] asm(#symbol);
#define NVML NCCL
#include "observe/shim/gpu/entries.inc"
#include "observe/shim/gpu/nvml_entries.inc"
#undef STUB
#undef FUNCTION
#undef NCCL
#undef NVML
}

namespace assay::gpu {

constinit Helpers helpers = {};

namespace {

const Entry kDriver[] = {
#define STUB(symbol, name, version, per_thread, quantity, bytes, scale) \
  {#symbol, &assay_gpu_real_##symbol, assay_gpu_wrapper_##symbol, #name, version, per_thread},
#define FUNCTION(symbol, name, version, per_thread) \
  {#symbol, &assay_gpu_real_##symbol, assay_gpu_wrapper_##symbol, #name, version, per_thread},
#define NCCL(symbol)
#include "observe/shim/gpu/entries.inc"
#undef STUB
#undef FUNCTION
#undef NCCL
};
const Entry kNccl[] = {
#define STUB(symbol, name, version, per_thread, quantity, bytes, scale)
#define FUNCTION(symbol, name, version, per_thread)
#define NCCL(symbol) \
  {#symbol, &assay_gpu_real_##symbol, assay_gpu_wrapper_##symbol, nullptr, 0, false},
#include "observe/shim/gpu/entries.inc"
#undef STUB
#undef FUNCTION
};
const Entry kNvml[] = {
#define NVML NCCL
#include "observe/shim/gpu/nvml_entries.inc"
#undef NCCL
#undef NVML
};

Result not_supported() {
  return kNotSupported;
}

template <typename Function>
void find(const Library& library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(library.find(name));
}

void found_driver(const Library& library) {
  find(library, helpers.current_device, "cuCtxGetDevice");
  find(library, helpers.device_uuid, "cuDeviceGetUuid_v2");
  if (helpers.device_uuid == nullptr) find(library, helpers.device_uuid, "cuDeviceGetUuid");
  find(library, helpers.graph_nodes, "cuGraphGetNodes");
  find(library, helpers.node_type, "cuGraphNodeGetType");
  find(library, helpers.child_graph, "cuGraphChildGraphNodeGetGraph");
  find(library, helpers.current_context, "cuCtxGetCurrent");
  find(library, helpers.primary_state, "cuDevicePrimaryCtxGetState");
  find(library, helpers.is_capturing, "cuStreamIsCapturing");
  find(library, helpers.is_capturing_per_thread, "cuStreamIsCapturing_ptsz");
  find(library, helpers.default_pool, "cuDeviceGetDefaultMemPool");
  find(library, helpers.pool_attribute, "cuMemPoolGetAttribute");
  find(library, helpers.graph_memory, "cuDeviceGetGraphMemAttribute");
  find(library, helpers.allocation_node, "cuGraphMemAllocNodeGetParams");
  find(library, helpers.free_node, "cuGraphMemFreeNodeGetParams");
  find(library, helpers.context_id, "cuCtxGetId");
  find(library, helpers.event_create, "cuEventCreate");
  find(library, helpers.event_record, "cuEventRecord");
  find(library, helpers.event_record_ptsz, "cuEventRecord_ptsz");
  find(library, helpers.event_query, "cuEventQuery");
  find(library, helpers.event_elapsed, "cuEventElapsedTime");
  find(library, helpers.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  hooks.pacing_begins();
}

void found_nccl(const Library& library) {
  find(library, helpers.nccl_count, "ncclCommCount");
  find(library, helpers.nccl_rank, "ncclCommUserRank");
}

void found_nvml(const Library& library) {
  find(library, helpers.nvml_init, "nvmlInit_v2");
  find(library, helpers.nvml_uuid, "nvmlDeviceGetUUID");
  find(library, helpers.nvml_index, "nvmlDeviceGetIndex");
  find(library, helpers.nvml_by_uuid, "nvmlDeviceGetHandleByUUID");
  find(library, helpers.nvml_processes, "nvmlDeviceGetComputeRunningProcesses_v3");
}

}  // namespace

constinit Finder driver_finder{"libcuda.so.1", kDriver, sizeof kDriver / sizeof(Entry),
                               not_supported, found_driver};
constinit Finder nccl_finder{"libnccl.so.2", kNccl, sizeof kNccl / sizeof(Entry), nullptr,
                             found_nccl};
constinit Finder nvml_finder{"libnvidia-ml.so.1", kNvml, sizeof kNvml / sizeof(Entry), nullptr,
                             found_nvml};

bool driver_ready() {
  return driver_finder.ready();
}
bool nccl_ready() {
  return nccl_finder.ready();
}
bool nvml_ready() {
  return nvml_finder.ready();
}

}  // namespace assay::gpu

extern "C" int assay_gpu_enter() {
  if (!assay::gpu::driver_ready()) return 0;
  assay::gpu::block();
  return 1;
}
