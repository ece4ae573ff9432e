// The driver's functions, NCCL's and NVML's: whether they are found, those that are called but not
// wrapped, and which address or name has a wrapper.
#pragma once

#include "observe/shim/gpu/gpu.h"

extern "C" {

// Finds the driver's functions and gives this thread a block. False: there is no driver.
ASSAY_HIDDEN int assay_gpu_enter();
}

namespace assay::gpu {

bool driver_ready();
bool nccl_ready();
bool nvml_ready();

// Functions of the driver that are called but not wrapped; null if it has none.
struct Helpers {
  Result (*current_device)(int*);
  Result (*device_uuid)(unsigned char*, int);
  Result (*graph_nodes)(void*, void**, std::size_t*);
  Result (*node_type)(void*, int*);
  Result (*child_graph)(void*, void**);
  Result (*current_context)(void**);
  Result (*context_id)(void*, unsigned long long*);
  Result (*event_create)(void**, unsigned);
  Result (*event_record)(void*, void*);
  Result (*event_record_ptsz)(void*, void*);
  Result (*event_query)(void*);
  Result (*event_elapsed)(float*, void*, void*);
  Result (*is_capturing)(void*, int*);
  Result (*is_capturing_per_thread)(void*, int*);
  Result (*exchange_capture_mode)(int*);
  int (*nccl_count)(void*, int*);
  int (*nccl_rank)(void*, int*);
  // Memory.
  Result (*primary_state)(int, unsigned*, int*);
  Result (*default_pool)(void**, int);
  Result (*pool_attribute)(void*, int, void*);
  Result (*graph_memory)(int, int, void*);
  Result (*allocation_node)(void*, void*);
  Result (*free_node)(void*, std::uint64_t*);
  // NVML's.
  int (*nvml_init)();
  int (*nvml_uuid)(void*, char*, unsigned);
  int (*nvml_index)(void*, unsigned*);
  int (*nvml_by_uuid)(const char*, void**);
  int (*nvml_processes)(void*, unsigned*, void*);
};
extern constinit Helpers helpers;

// The wrapper of the real function at this address, or null.
void* wrapper_of(const void* real);
// Whether a symbol of this name is wrapped.
bool is_wrapped_name(const char* name);

// In the child of a fork: forgets searches by threads that do not exist in it (finder.cc).
void forget_finders();

// While one of these exists, driver calls of this thread invalidate no capture of a stream, neither
// its own nor, in the default mode, those of other threads.
class RelaxedCaptureMode {
 public:
  RelaxedCaptureMode() {
    known_ = helpers.exchange_capture_mode != nullptr && helpers.exchange_capture_mode(&mode_) == 0;
  }
  ~RelaxedCaptureMode() {
    if (known_) helpers.exchange_capture_mode(&mode_);
  }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  static constexpr int kRelaxed = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
  int mode_ = kRelaxed;
  bool known_ = false;
};

}  // namespace assay::gpu

// First line of a wrapper's body: finds the real function, or returns an error if there is none.
#define ASSAY_REAL(symbol)                                                        \
  if (!assay::gpu::driver_ready()) return assay::gpu::kNotInitialized;            \
  auto* const next = assay::gpu::real<decltype(symbol)>(assay_gpu_real_##symbol); \
  if (next == nullptr) return assay::gpu::kNotSupported
