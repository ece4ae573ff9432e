// GpuCounters: a run's GPU region, seen from outside its processes. `assay run` creates it before
// the command starts, passes its path in the command's environment together with libassay-gpu.so,
// and sums the counters up at the end; recovery does that for a collector that was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/process/environment.h"
#include "observe/wire/gpu_region.h"

namespace assay::collect {

// Whether a CUDA program can run: by ASSAY_GPU=1 or 0 in the environment; otherwise, whether the
// loader would find libcuda.so.1 (LD_LIBRARY_PATH, its cache, its default directories).
bool cuda_may_run(const base::Environment& environment);

// Whether libassay-gpu.so is installed.
bool gpu_library_found();

struct GpuReport {
  struct Collective {
    std::uint64_t communicator = 0;
    std::uint32_t ranks = 0;
    wire::GpuOperation operation = wire::GpuOperation::kAllReduce;
    unsigned type = 0;
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
  };
  struct Memory {
    std::string uuid;  // "GPU-…", as NVML writes it
    std::uint64_t peak_bytes = 0;
  };
  struct Share {
    std::string uuid;              // empty: for devices without limits of their own
    std::uint64_t byte_limit = 0;  // 0: none
    wire::GpuShare share;
    std::uint64_t busy_ns = 0;
    std::uint64_t waited_ns = 0;
  };
  wire::GpuTotals totals;
  std::vector<Collective> collectives;  // over all processes, by communicator, operation and type
  std::vector<Memory> memory;           // of the process that held most
  std::vector<Share> shares;            // of devices with a limit, or where threads waited
  std::uint64_t lost = 0;  // threads and collectives that did not fit: all counts are too low then
};

class GpuCounters {
 public:
  // Creates the region of the run with this uid, in /dev/shm if possible, else in `folder`. Nothing
  // if that fails: the command runs uncounted then.
  static std::optional<GpuCounters> make(const std::string& uid,
                                         const std::filesystem::path& folder);
  // The region of a running run, or one that a killed collector left.
  static std::optional<GpuCounters> find(const std::string& uid,
                                         const std::filesystem::path& folder);
  // The uids of this user's runs with regions in /dev/shm; some may have ended.
  static std::vector<std::string> uids();
  GpuCounters(GpuCounters&& other) noexcept;
  GpuCounters& operator=(GpuCounters&& other) noexcept;
  ~GpuCounters();

  // Adds the library and the region's path to a command's environment. False, with nothing changed,
  // if the library is not installed.
  bool add_to(base::Environment& environment) const;

  [[nodiscard]] GpuReport report() const;
  // For each slot, whether its process is running.
  [[nodiscard]] std::vector<bool> living() const;
  [[nodiscard]] wire::GpuRegion& region() { return *region_; }
  // Removes the file. Processes that have it mapped keep counting without effect.
  void remove();

 private:
  GpuCounters(std::filesystem::path path, wire::GpuRegion* region)
      : path_(std::move(path)), region_(region) {}

  std::filesystem::path path_;
  wire::GpuRegion* region_ = nullptr;
};

}  // namespace assay::collect
