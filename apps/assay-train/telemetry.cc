#include "assay-train/telemetry.h"

#include <algorithm>

namespace assay::cli {
namespace {

// Memory is taken before the first step and stays; asking for it more often would cost steps.
constexpr double kMemoryEvery = 1;  // seconds

}  // namespace

Telemetry::Telemetry(const train::Backend& backend, std::unique_ptr<machine::Meter> meter)
    : backend_(backend) {
  if (meter != nullptr) power_ = std::make_unique<machine::PowerLog>(std::move(meter));
}

void Telemetry::measure_memory() {
  last_.memory_bytes = backend_.measured_bytes();
  last_.host_bytes = host_.now().resident_bytes;
  peak_memory_bytes_ = std::max(peak_memory_bytes_, last_.memory_bytes);
  since_measured_.restart();
}

void Telemetry::pass_over() {
  if (power_ != nullptr) power_->take();
}

StepUse Telemetry::take() {
  if (last_.host_bytes == 0 || since_measured_.elapsed().count() >= kMemoryEvery) measure_memory();
  last_.power = power_ != nullptr ? power_->take() : machine::Used{};
  return last_;
}

}  // namespace assay::cli
