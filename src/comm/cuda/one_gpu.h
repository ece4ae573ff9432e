// Communicators whose ranks are threads of one process that share a GPU, each with a stream of its
// own: programs of several ranks run with the real kernels on one device.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/local.h"

namespace assay::comm {

// Who copies between ranks.
enum class Copying : std::uint8_t {
  kBesideKernels,  // a kernel of ours (copy_kernel.h): multiprocessors go on computing
  kByDriver,       // cudaMemcpyAsync: all multiprocessors, before they go on
};

struct OneGpuOptions {
  std::chrono::milliseconds timeout = LocalOptions{}.timeout;
  Copying copying = Copying::kBesideKernels;
};

// One per rank; memory is the device's. Issuing a call queues it behind what the caller's stream
// holds so far, and waiting makes that stream wait: the host waits only until all ranks have issued
// the call, at most `options.timeout`. Copies run on a stream of each rank's own.
//
// A device has 8 queues unless CUDA_DEVICE_MAX_CONNECTIONS asked for more before it was first used.
// Streams beyond that share one, and kernels then wait for another rank's copies.
base::Result<std::vector<std::unique_ptr<Communicator>>> make_one_gpu(
    int ranks, int device = 0, const OneGpuOptions& options = {});

}  // namespace assay::comm
