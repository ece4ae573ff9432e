// Communicators whose ranks are threads of one process that share a GPU, each with its own stream:
// runs programs of several ranks with the real kernels on one device.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/local.h"

namespace assay::comm {

// How data is copied between ranks.
enum class Copying : std::uint8_t {
  kBesideKernels,  // our copy_kernel.h, concurrent with computation
  kByDriver,       // cudaMemcpyAsync, which occupies all multiprocessors
};

struct OneGpuOptions {
  std::chrono::milliseconds timeout = LocalOptions{}.timeout;
  Copying copying = Copying::kBesideKernels;
};

// One communicator per rank, for device memory. Issuing a call queues it after what the caller's
// stream holds so far, and waiting makes that stream wait; the host waits only until all ranks have
// issued the call, at most `options.timeout`. Copies run on a separate stream per rank.
//
// A device has 8 hardware queues unless CUDA_DEVICE_MAX_CONNECTIONS was set higher before its first
// use. Further streams share a queue, and kernels then wait for another rank's copies.
base::Result<std::vector<std::unique_ptr<Communicator>>> make_one_gpu(
    int ranks, int device = 0, const OneGpuOptions& options = {});

}  // namespace assay::comm
