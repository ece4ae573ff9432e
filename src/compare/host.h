// Host: what else used the machine while commands were compared: other processes, the hypervisor,
// swapping, thermal throttling. Affected blocks are marked; no measurement is dropped.
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
  double busy_s = 0;   // sum over processors, without steal time
  double steal_s = 0;  // taken by the hypervisor
  std::int64_t swapped_pages = 0;
  std::int64_t throttles = 0;              // thermal throttle events of processors
  std::vector<std::string> gpu_problems;   // currently
  std::map<int, std::int64_t> gpu_hot_ns;  // time each GPU was throttled by heat
};

// What happened between two samples.
struct HostUsage {
  double seconds = 0;
  double others_cpus = 0;  // CPU time of other processes, in processors
  double steal_share = 0;  // of the processors' time
  std::int64_t swapped_pages = 0;
  std::int64_t throttles = 0;
  std::vector<std::string> gpu_problems;
};
// `own_cpu_s`: processor time of the compared commands.
HostUsage host_usage(const HostSample& from, const HostSample& to, double own_cpu_s, int cpus);

// Possible disturbances of the measurements, one phrase each.
std::vector<std::string> host_problems(const HostUsage& usage);

class Host {
 public:
  // `root` contains proc/ and sys/; GPUs are queried with the NVML library.
  explicit Host(std::string root = "/", const std::string& nvml_library = "libnvidia-ml.so.1");

  [[nodiscard]] HostSample sample();
  [[nodiscard]] int cpus() const { return cpus_; }
  // Warnings before anything is measured: load, frequency governor, swap, GPU clocks.
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
