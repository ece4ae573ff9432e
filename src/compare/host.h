// Host: what the machine does beside the commands that are compared. A stretch of time in which
// others had the processors, the hypervisor took time away, memory was swapped or a clock was
// throttled is marked; nothing that was measured in it is dropped.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine/meter.h"

namespace assay::compare {

struct HostSample {
  std::int64_t monotonic_ns = 0;
  double busy_s = 0;   // of all processors, but for what the hypervisor took
  double steal_s = 0;  // what it took
  std::int64_t swapped_pages = 0;
  std::int64_t throttles = 0;              // times that a processor was too hot
  std::vector<std::string> gpu_troubles;   // at this moment
  std::map<int, std::int64_t> gpu_hot_ns;  // time in which each was slowed down for heat
};

// What happened between two samples.
struct Stretch {
  double seconds = 0;
  double others_cpus = 0;  // processors' worth of time that was not ours
  double steal_share = 0;  // of the processors' time
  std::int64_t swapped_pages = 0;
  std::int64_t throttles = 0;
  std::vector<std::string> gpu_troubles;
};
Stretch stretch_between(const HostSample& from, const HostSample& to, double our_cpu_s, int cpus);

// What is wrong with it, in words; empty when nothing is.
std::vector<std::string> complaints(const Stretch& stretch);

class Host {
 public:
  // `root` has proc/ and sys/; GPUs are asked through the library, if any is on the bus.
  explicit Host(std::string root = "/", const std::string& nvml_library = "libnvidia-ml.so.1");

  [[nodiscard]] HostSample sample();
  [[nodiscard]] int cpus() const { return cpus_; }
  // What should be known before anything is measured: load, governor, swap, clocks of GPUs.
  [[nodiscard]] std::vector<std::string> preflight() const;

 private:
  struct Gpu {
    int index = 0;
    std::unique_ptr<machine::Meter> meter;
  };

  std::string root_;
  int cpus_ = 1;
  std::vector<std::string> throttle_files_;
  std::vector<Gpu> gpus_;
};

}  // namespace assay::compare
