// WaitTimes: how long the device has waited for other ranks in a step. The host queues a wait and
// goes on, so the time is measured on the stream, by an event before the wait and one after it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "train/cuda/device.h"

namespace assay::train::cuda {

class WaitTimes {
 public:
  WaitTimes() = default;
  ~WaitTimes() {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  WaitTimes(const WaitTimes&) = delete;
  WaitTimes& operator=(const WaitTimes&) = delete;

  // Call before and after queueing a wait.
  void begin(Device& device) { record(device); }
  void end(Device& device) { record(device); }

  // Seconds waited since the last call; call it when the host has synchronised with the stream. A
  // wait that was already satisfied still counts the few microseconds between two events.
  double take_s(Device& device) {
    double sum_ms = 0;
    for (std::size_t i = 0; i + 1 < recorded_; i += 2) {
      float ms = 0;
      device.check(cudaEventElapsedTime(&ms, events_[i], events_[i + 1]), "event");
      sum_ms += static_cast<double>(ms);
    }
    recorded_ = 0;
    return sum_ms / 1e3;
  }

 private:
  void record(Device& device) {
    if (recorded_ == events_.size()) {
      cudaEvent_t event = nullptr;
      device.check(cudaEventCreate(&event), "event");
      events_.push_back(event);
    }
    device.check(cudaEventRecord(events_[recorded_++], device.stream), "event");
  }

  std::vector<cudaEvent_t> events_;  // reused from step to step
  std::size_t recorded_ = 0;
};

}  // namespace assay::train::cuda
