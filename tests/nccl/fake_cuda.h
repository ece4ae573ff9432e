// The functions of the CUDA runtime that src/comm/cuda calls, on host memory: a stream is a thread
// that does what is queued, in order. A program that has these links nothing of CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace assay::fakecuda {

// Queues work as a kernel of the stream.
void enqueue(cudaStream_t stream, std::function<void()> work);

// The device that this thread has chosen: tests give each rank one.
int current_device();

// Waits until the device has nothing to do, as freeing memory does.
void wait_for_device(int device);

// Copies by the kernel of comm/cuda so far, which this replaces too.
int copies_by_kernel();

// Of what a test made, is still there.
int streams_left();
int events_left();
int allocations_left();

}  // namespace assay::fakecuda
