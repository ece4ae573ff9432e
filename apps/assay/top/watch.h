// TopWatch: looks at this machine's GPUs and at the regions of running jobs, again and again.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "machine/gpu_watch.h"
#include "observe/collect/gpu_count.h"
#include "share/view.h"
#include "store/store.h"

namespace assay::cli {

// A running job's place among `uids`: the region and what the store says of it, if it says
// anything.
struct RunningJob {
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
  std::vector<RunningJob> jobs();
  [[nodiscard]] static share::JobLook look_at(RunningJob& job);

 private:
  struct Known {
    std::int64_t id = 0;
    std::string title;
    std::string spool;
    bool alive = false;  // whoever records it
  };
  std::map<std::string, Known> known_jobs();

  std::optional<store::Store> store_;
  std::optional<machine::GpuWatch> gpus_;
  std::string no_gpus_;
};

}  // namespace assay::cli
