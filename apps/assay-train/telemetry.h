// Telemetry: what a run uses while it computes: energy, clock, memory. Asked once per step, and
// never a reason to wait.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/process/proc.h"
#include "machine/power_log.h"
#include "train/backend.h"

namespace assay::cli {

struct StepUse {
  machine::Used power;
  std::int64_t memory_bytes = 0;  // of the device, as it counts
  std::int64_t host_bytes = 0;    // of this process
};

class Telemetry {
 public:
  // Without a meter there are no watts.
  Telemetry(const train::Backend& backend, std::unique_ptr<machine::Meter> meter);

  // Since the last call.
  StepUse take();
  // What was used since the last call is no step's.
  void pass_over();

  [[nodiscard]] std::int64_t peak_memory_bytes() const { return peak_memory_bytes_; }  // so far
  [[nodiscard]] std::int64_t peak_host_bytes() const { return host_.now().peak_bytes; }

 private:
  void measure_memory();

  const train::Backend& backend_;
  std::unique_ptr<machine::PowerLog> power_;
  base::ProcessMemory host_;
  base::Stopwatch since_measured_;
  StepUse last_;
  std::int64_t peak_memory_bytes_ = 0;
};

}  // namespace assay::cli
