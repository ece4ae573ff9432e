// TopWatch: looks at this machine's GPUs and at the regions of running runs, again and again.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "machine/gpu_watch.h"
#include "observe/collect/gpu_count.h"
#include "share/view.h"
#include "store/store.h"

namespace assay::cli {

// A running run's place among `uids`: the region and what the store says of it, if it says
// anything.
struct RunningRun {
  collect::GpuCount count;
  std::string uid;
  std::optional<std::int64_t> id;
  std::string title;
};

class TopWatch {
 public:
  TopWatch();

  share::Look look();
  // Of this user, on this machine, in the order of their numbers and uids.
  std::vector<RunningRun> runs();
  [[nodiscard]] static share::RunLook look_at(RunningRun& run);

 private:
  struct Known {
    std::int64_t id = 0;
    std::string title;
    std::string spool;
    bool alive = false;  // whoever records it
  };
  std::map<std::string, Known> known_runs();

  std::optional<store::Store> store_;
  std::optional<machine::GpuWatch> gpus_;
  std::string no_gpus_;
};

}  // namespace assay::cli
