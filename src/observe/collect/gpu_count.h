// GpuCount: the GPU region from outside. `assay run` makes one before the command starts, names it
// in the command's environment together with libassay-gpu.so, and sums it up when the command is
// over; recovery does the last part for a collector that was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/process/environment.h"
#include "observe/wire/gpu_region.h"

namespace assay::collect {

// Whether a CUDA program may run: ASSAY_GPU=1 or 0 in the environment says so; otherwise, whether
// the loader would find libcuda.so.1 (LD_LIBRARY_PATH, its cache, its usual folders).
bool gpu_wanted(const base::Environment& environment);

// Whether our library can be loaded into commands at all.
bool gpu_library_there();

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
    std::string uuid;              // empty: what holds for devices without limits of their own
    std::uint64_t byte_limit = 0;  // 0: none
    wire::GpuShare share;
    std::uint64_t busy_ns = 0;
    std::uint64_t waited_ns = 0;
  };
  wire::GpuTotals totals;
  std::vector<Collective> collectives;  // over all processes, by communicator, operation and type
  std::vector<Memory> memory;           // of the process that had most
  std::vector<Share> shares;            // where there is a limit, or was a wait
  std::uint64_t lost = 0;  // threads and collectives that found no place: then all is too little
};

class GpuCount {
 public:
  // Makes the region of the run with this uid, in memory if that can be had, else in `folder`.
  // Nothing if it cannot be made: then the command runs uncounted.
  static std::optional<GpuCount> make(const std::string& uid, const std::filesystem::path& folder);
  // The region that a killed collector left, if it did.
  static std::optional<GpuCount> find(const std::string& uid, const std::filesystem::path& folder);
  // The uids of this user's runs whose regions are in memory; some may be over.
  static std::vector<std::string> uids();
  GpuCount(GpuCount&& other) noexcept;
  GpuCount& operator=(GpuCount&& other) noexcept;
  ~GpuCount();

  // Puts the library and the region's place into a command's environment. False, and nothing done,
  // if the library is not beside the program.
  bool add_to(base::Environment& environment) const;

  [[nodiscard]] GpuReport report() const;
  // Slot by slot, whether its process lives.
  [[nodiscard]] std::vector<bool> living() const;
  [[nodiscard]] wire::GpuRegion& region() { return *region_; }
  // Takes the file away. Processes that have it mapped go on counting, for nobody.
  void remove();

 private:
  GpuCount(std::filesystem::path path, wire::GpuRegion* region)
      : path_(std::move(path)), region_(region) {}

  std::filesystem::path path_;
  wire::GpuRegion* region_ = nullptr;
};

}  // namespace assay::collect
