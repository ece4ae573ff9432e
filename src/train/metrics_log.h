// MetricsLog: a run's metrics on their way into the store. A thread of its own writes them, about
// once a second, so that no step ever waits for a database: one that is locked gets them later, and
// one that cannot be written gets none, which is said once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/metrics.h"
#include "store/plans.h"
#include "store/this_run.h"

namespace assay::train {

class MetricsLog {
 public:
  // Called on the log's thread, at most once.
  using Note = std::function<void(const std::string& line)>;

  MetricsLog(store::ThisRun run, Note note,
             std::chrono::milliseconds every = std::chrono::seconds(1));
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;
  // Writes what is left, and waits for a locked store a few seconds at most.
  ~MetricsLog();

  void add(store::MetricRow row);
  // What was predicted about the run, written before its rows.
  void add(store::PlanRecord plan);

 private:
  void work();
  // False: there is nothing to write into.
  bool open();
  bool write(std::optional<store::PlanRecord>& plan, std::vector<store::MetricRow>& rows);
  void give_up(const base::Error& why);

  const store::ThisRun run_;
  const Note note_;
  const std::chrono::milliseconds every_;
  std::optional<store::Store> store_;
  std::optional<store::MetricWriter> writer_;

  std::mutex mutex_;
  std::condition_variable came_;  // rows, or the end: waited for while there is nothing to do
  std::condition_variable end_;   // waited for between two writes, when rows wake nobody
  std::optional<store::PlanRecord> plan_;
  std::vector<store::MetricRow> rows_;  // not written yet
  bool stopping_ = false;
  bool given_up_ = false;
  std::thread thread_;
};

}  // namespace assay::train
