// Each rank's measurements of itself: RankTelemetry on every rank, and RankTable on rank 0, which
// receives all ranks' samples after each step. `assay report` and `assay top` show them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay-train/membership.h"
#include "base/clock.h"
#include "base/process/proc.h"
#include "base/result.h"
#include "spec/job.h"
#include "store/ranks.h"
#include "train/backend.h"
#include "train/rank_groups.h"
#include "train/trainer.h"

namespace assay::cli {

class RankTelemetry : public train::RankMeter {
 public:
  RankTelemetry(const train::Backend& backend, train::RankGroups& groups)
      : backend_(backend), groups_(groups) {}
  void begin_step() override { groups_.take_waited_s(); }
  train::RankSample end_step(double seconds) override;

 private:
  const train::Backend& backend_;
  train::RankGroups& groups_;
  base::ProcessMemory host_;
  std::optional<base::Stopwatch> since_measured_;
  train::RankSample last_;
};

class RankTable {
 public:
  // Called by every rank; only rank 0's table has data.
  static base::Result<RankTable> gather(const Membership& member, const spec::JobSpec& job,
                                        std::int64_t planned_bytes);
  void stepped(std::int64_t step, std::span<const train::RankSample> samples);
  [[nodiscard]] const std::vector<store::RankRecord>& ranks() const { return ranks_; }

 private:
  std::vector<store::RankRecord> ranks_;
  std::int64_t steps_ = 0;  // executed by this process
};

// "fsdp 1, pp 0"; only the axes that the layout uses.
std::string place_text(const spec::LayoutSpec& layout, std::int64_t rank);

// {"rank": 1, "host": "n2", "step_s": 0.1, …}; `step_s` and `wait_s` are means.
base::Json rank_json(const store::RankRecord& rank);

}  // namespace assay::cli
