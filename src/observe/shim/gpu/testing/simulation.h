// Programs on a simulated GPU, in simulated time: the unchanged pacing code (pace/pace.cc,
// lanes.cc, marks.cc) over a deterministic driver, clock and scheduler without other load.
//
// Every program is a process with one thread, one stream and its own run. The GPU runs one
// process's queue at a time and switches between those that have work, as time-sliced GPUs do; copy
// engines run concurrently, in the order of their queue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "observe/shim/gpu/pace/costs.h"

namespace assay::gpu::testing {

struct SimulatedCosts {
  std::uint64_t launch_ns = 2'000;  // host time
  std::uint64_t record_ns = 1'000;
  std::uint64_t query_ns = 400;
  std::uint64_t event_ns = 1'500;      // of the device's time
  std::uint64_t slice_ns = 2'000'000;  // time slice while others have work
  std::uint64_t switch_ns = 30'000;    // from one process to another
  std::uint64_t late_ns = 60'000;      // a sleep ends this much later than it should
  std::uint64_t wake_ns = 40'000;      // and this much after another process wakes it
};

// Actions of a program. All times are nanoseconds.
class Program {
 public:
  virtual ~Program() = default;
  // A kernel of this function; with `by_grid`, a distinct grid for each duration.
  virtual void kernel(std::uint64_t function, std::uint64_t ns, bool by_grid = true) = 0;
  virtual void copy(CopyKind kind, std::uint64_t bytes) = 0;
  virtual void graph(std::uint64_t executable, std::uint64_t ns) = 0;
  virtual void synchronize() = 0;
  // Waits by queries of an event, which the library does not see.
  virtual void poll() = 0;
  virtual void compute(std::uint64_t ns) = 0;  // on the host
};
using Body = std::function<void(Program&)>;  // one round; repeated until the end

struct Simulated {
  Body body;
  std::uint32_t share = 0;  // thousandths; 0: no limit
  bool borrow = false;
};
// For each program, the work finished in each of `windows` seconds, after a start-up phase:
// nanoseconds of device time.
std::vector<std::vector<double>> simulate(const std::vector<Simulated>& programs, int windows,
                                          const SimulatedCosts& costs = {});

}  // namespace assay::gpu::testing
