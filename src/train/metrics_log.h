// MetricsLog: writes a run's metrics to the store on its own thread, about once a second, so that
// no step waits for the database. If the store is locked, rows are written later; if it cannot be
// written at all, that is reported once and rows are dropped. If the plan cannot be written, rows
// still are.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "store/metrics.h"
#include "store/plans.h"
#include "store/ranks.h"
#include "store/this_run.h"

namespace assay::train {

class MetricsLog {
 public:
  // Reports that the plan or metrics are lost. Called on the log's thread, at most once for each.
  using Note = std::function<void(const std::string& line)>;

  MetricsLog(store::ThisRun run, Note note,
             std::chrono::milliseconds every = std::chrono::seconds(1));
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;
  // Writes the remaining rows; waits for a locked store a few seconds at most.
  ~MetricsLog();

  void add(store::MetricRow row);
  // The prediction for the run, written before its rows.
  void add(store::PlanRecord plan);
  // The ranks' latest measurements: only the newest are written, along with the rows.
  void add(std::vector<store::RankRecord> ranks);

 private:
  void work();
  // False: the store cannot be opened.
  bool open();
  struct Batch {
    std::optional<store::PlanRecord> plan;
    std::vector<store::RankRecord> ranks;
    std::vector<store::MetricRow> rows;

    [[nodiscard]] bool empty() const { return !plan && ranks.empty() && rows.empty(); }
  };
  bool write(Batch& batch);
  void report(std::string_view lost, base::Error why) const;
  // Stops writing rows.
  void give_up(const base::Error& why);

  const store::ThisRun run_;
  const Note note_;
  const std::chrono::milliseconds every_;
  std::optional<store::Store> store_;
  std::optional<store::MetricWriter> writer_;

  std::mutex mutex_;
  std::condition_variable pending_;  // signals work or stopping_; waited for when idle
  std::condition_variable stop_;     // signals stopping_; waited for between two writes
  Batch next_;                       // not written yet
  bool stopping_ = false;
  bool given_up_ = false;
  std::thread thread_;
};

}  // namespace assay::train
