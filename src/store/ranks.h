// Ranks: what each rank of a training run measured about itself. Rank 0 writes all of them about
// once a second during the run; `assay report` and `assay top` read them. Table `run_rank`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

struct RankRecord {
  std::int64_t rank = 0;
  std::string host;
  std::string place;             // in the layout: "fsdp 1, pp 0"
  std::int64_t step = 0;         // the last one done
  std::int64_t steps = 0;        // counted in the sums: all, without the first if there are several
  double step_s = 0;             // sum over the counted steps
  std::optional<double> wait_s;  // time in step_s spent waiting for communication; none: unknown
  double last_step_s = 0;
  std::optional<double> last_wait_s;
  std::int64_t planned_bytes = 0;  // of device memory, by this rank's own plan
  std::int64_t memory_bytes = 0;   // peak use of device memory
  std::int64_t host_bytes = 0;     // peak resident memory of its process

  [[nodiscard]] double mean_step_s() const {
    return steps == 0 ? 0 : step_s / static_cast<double>(steps);
  }
  [[nodiscard]] std::optional<double> mean_wait_s() const {
    if (!wait_s || steps == 0) return std::nullopt;
    return *wait_s / static_cast<double>(steps);
  }
  // The rank's own work: its step without waiting. None where waiting is not measured.
  [[nodiscard]] std::optional<double> mean_busy_s() const {
    const auto wait = mean_wait_s();
    if (!wait) return std::nullopt;
    return mean_step_s() - *wait;
  }
  bool operator==(const RankRecord&) const = default;
};

// Writes these ranks of the run with this uid, replacing earlier records of them. No such run is an
// error. False: other processes kept the store locked and nothing was written; try again.
base::Result<bool> write_ranks(Store& store, const std::string& run_uid,
                               std::span<const RankRecord> ranks);

// Ordered by rank; empty for runs on one rank, or recorded before ranks were stored.
base::Result<std::vector<RankRecord>> load_ranks(Store& store, RunId run);

// The rank that the others wait for: the one whose own work takes longest, and by how much it is
// slower than the median rank. Nothing for fewer than two ranks, or where waiting is not measured.
struct SlowestRank {
  std::int64_t rank = 0;
  double busy_s = 0;
  double median_busy_s = 0;
  [[nodiscard]] double slower_by() const {
    return median_busy_s > 0 ? busy_s / median_busy_s - 1 : 0;
  }
};
std::optional<SlowestRank> slowest_of(std::span<const RankRecord> ranks);

}  // namespace assay::store
