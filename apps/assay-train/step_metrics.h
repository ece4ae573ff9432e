// What is measured per step (Telemetry, Utilisation), and the row of named numbers made from it,
// which is the same in metrics.jsonl, --json and the store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/process/proc.h"
#include "machine/power_log.h"
#include "spec/job.h"
#include "store/metrics.h"
#include "train/backend.h"
#include "train/trainer.h"

namespace assay::cli {

struct StepUsage {
  machine::PowerUse power;
  std::int64_t memory_bytes = 0;  // on the device, as the device counts it
  std::int64_t host_bytes = 0;    // resident memory of this process
};

// Reads energy, clock and memory once per step, without ever blocking it.
class Telemetry {
 public:
  // `meter` may be null: power is then not measured.
  Telemetry(const train::Backend& backend, std::unique_ptr<machine::Meter> meter);

  // Usage since the last call of take() or discard().
  StepUsage take();
  // Discards the usage since the last call, which belongs to no step.
  void discard();

  [[nodiscard]] std::int64_t peak_memory_bytes() const { return peak_memory_bytes_; }
  [[nodiscard]] std::int64_t peak_host_bytes() const { return host_.now().peak_bytes; }

 private:
  void measure_memory();

  const train::Backend& backend_;
  std::unique_ptr<machine::PowerLog> power_;
  base::ProcessMemory host_;
  base::Stopwatch since_measured_;
  StepUsage last_;
  std::int64_t peak_memory_bytes_ = 0;
};

// Model FLOPs utilisation under both common definitions (spec/parameters.h), relative to the peak
// rate of bf16, by which systems are compared, or of fp32 for jobs in fp32. For fp8 jobs also
// relative to the peak of fp8, because a value above 100 % of bf16's would be meaningless.
struct Utilisation {
  double mfu = 0;     // counts parameters that multiply activations
  double mfu_6n = 0;  // counts all parameters
  const char* peak = "bf16";
  struct Fp8Utilisation {
    double mfu = 0;
    double mfu_6n = 0;
  };
  std::optional<Fp8Utilisation> fp8 = {};
};
class UtilisationModel {
 public:
  UtilisationModel() = default;  // for an unknown device
  explicit UtilisationModel(const spec::JobSpec& job);
  // Nothing if the peak rate of the device is not known.
  [[nodiscard]] std::optional<Utilisation> at(double tokens_per_s) const;

 private:
  double flops_ = 0;  // per token
  double flops_6n_ = 0;
  double peak_ = 0;
  double fp8_peak_ = 0;  // for jobs in fp8
  const char* peak_name_ = "bf16";
};

struct MeasuredStep {
  train::StepReport report;
  StepUsage usage;
  std::optional<Utilisation> utilisation;
  std::int64_t unix_ns = 0;  // when it ended
  std::int64_t tokens = 0;   // in this step

  [[nodiscard]] std::optional<double> watts() const;
};

store::MetricRow row_of(const MeasuredStep& step);
store::MetricRow row_of(const train::ValidationReport& report);

}  // namespace assay::cli
