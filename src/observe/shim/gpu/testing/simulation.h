// Programs on a simulated GPU, in simulated time: the checkpoint (pace/pace.cc, lanes.cc, marks.cc)
// as it is, over a driver, a clock and a scheduler that are exact and never busy with anything
// else.
//
// Every program is a process with one thread, one stream and a run of its own. The GPU runs one
// process's queue at a time and changes between those that have work, as GPUs do that are shared by
// time; what a copy engine does runs beside that, in the order of its queue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "observe/shim/gpu/pace/costs.h"

namespace assay::gpu::testing {

struct SimulatedCosts {
  std::uint64_t launch_ns = 2'000;  // of the host's time
  std::uint64_t record_ns = 1'000;
  std::uint64_t query_ns = 400;
  std::uint64_t event_ns = 1'500;      // of the device's time
  std::uint64_t slice_ns = 2'000'000;  // of a process while others have work as well
  std::uint64_t switch_ns = 30'000;    // from one process to another
  std::uint64_t late_ns = 60'000;      // a sleep ends this much later than it should
  std::uint64_t wake_ns = 40'000;      // and this much after it is ended by another process
};

// What a program may do. All times are nanoseconds.
class Program {
 public:
  virtual ~Program() = default;
  // A kernel of this function, with another grid for each time that it takes if `by_grid`.
  virtual void kernel(std::uint64_t function, std::uint64_t ns, bool by_grid = true) = 0;
  virtual void copy(CopyKind kind, std::uint64_t bytes) = 0;
  virtual void graph(std::uint64_t executable, std::uint64_t ns) = 0;
  virtual void synchronize() = 0;
  virtual void compute(std::uint64_t ns) = 0;  // on the host
};
using Body = std::function<void(Program&)>;  // one round; repeated until the end

struct Simulated {
  Body body;
  std::uint32_t share = 0;  // thousandths; 0: no limit
  bool borrow = false;
};
// For each program, the work that was finished in each of `windows` seconds, after a short while
// to start in: nanoseconds of the device's time.
std::vector<std::vector<double>> simulate(const std::vector<Simulated>& programs, int windows,
                                          const SimulatedCosts& costs = {});

}  // namespace assay::gpu::testing
