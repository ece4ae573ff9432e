// WaitTimes: how long the device has waited for other ranks in a step. The host queues a wait and
// goes on, so it is the stream that knows: an event before it and one behind it.
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

  // Before and after a wait is queued.
  void begin(Device& device) { record(device); }
  void end(Device& device) { record(device); }

  // Since it was asked last; to be asked when the host has waited for the stream. A wait for what
  // is there already counts with the microseconds that two events take.
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

  std::vector<cudaEvent_t> events_;  // as many as a step needs, used again in the next
  std::size_t recorded_ = 0;
};

}  // namespace assay::train::cuda
