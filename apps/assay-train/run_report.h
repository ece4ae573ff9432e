// RunReport: the trainer's reporter. Redraws one line on a terminal, prints rows elsewhere, and
// writes every step's metrics to metrics.jsonl, to standard output under --json, and into the store
// if this process belongs to a recorded run. Also the prediction that is stored with the run.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay-train/device.h"
#include "assay-train/live_line.h"
#include "assay-train/metrics_file.h"
#include "assay-train/rank_metrics.h"
#include "assay-train/step_metrics.h"
#include "base/result.h"
#include "cli/verb.h"
#include "spec/job.h"
#include "store/plans.h"
#include "train/metrics_log.h"
#include "train/planned_step.h"
#include "train/trainer.h"

namespace assay::cli {

struct RunTotals {
  std::int64_t steps = 0;  // executed by this process
  std::int64_t tokens = 0;
  double seconds = 0;                  // sum over these steps
  std::optional<double> tokens_per_s;  // median
  std::optional<Utilisation> utilisation;
  std::optional<double> joules;
};

class RunReport : public train::Reporter {
 public:
  // Metrics go to out/metrics.jsonl; a resumed run continues the same file.
  // `last_step`: where --stop-after will stop, if that is before the job's last step.
  static base::Result<std::unique_ptr<RunReport>> open(const Session& session,
                                                       const spec::JobSpec& job,
                                                       const std::filesystem::path& out,
                                                       Telemetry& telemetry,
                                                       std::optional<std::int64_t> last_step);
  ~RunReport() override;
  RunReport(const RunReport&) = delete;
  RunReport& operator=(const RunReport&) = delete;

  // What was predicted, stored with the run.
  void planned(store::PlanRecord plan);
  // For a new run: renames the metrics of an earlier run.
  base::Result<void> keep_older_metrics() { return metrics_.set_aside(); }
  // The run uses another device than the job specifies, so the peak for MFU is unknown.
  void on_another_device() { utilisation_ = {}; }
  // For jobs with several ranks.
  void keep(RankTable table) { ranks_ = std::move(table); }
  [[nodiscard]] const std::vector<store::RankRecord>& ranks() const { return ranks_.ranks(); }
  void resumed(const std::filesystem::path& checkpoint, std::int64_t step) override;
  void began(std::int64_t first_step, std::int64_t steps) override;
  void started(const train::StartUp& startup) override;
  void stepped(const train::StepReport& report) override;
  void validated(const train::ValidationReport& report) override;
  void saved(const std::filesystem::path& folder, std::int64_t bytes) override;
  void ranks_stepped(std::int64_t step, std::span<const train::RankSample> ranks) override;
  void note(const std::string& line) override;

  [[nodiscard]] RunTotals totals() const;

 private:
  RunReport(const Session& session, const spec::JobSpec& job, MetricsFile metrics,
            Telemetry& telemetry, std::optional<std::int64_t> last_step);
  void write(const char* event, store::MetricRow row);
  void draw(const MeasuredStep& step);
  static void clear();

  const Session& session_;
  const spec::JobSpec& job_;
  MetricsFile metrics_;
  Telemetry& telemetry_;
  UtilisationModel utilisation_;
  std::optional<std::int64_t> stops_at_;
  bool terminal_ = false;
  bool prints_rows_ = false;
  std::optional<Rows> rows_;
  base::Stopwatch since_began_;
  std::int64_t last_step_ = 1;
  std::optional<Eta> eta_;
  std::optional<base::Stopwatch> since_step_;
  double validating_s_ = 0;  // since the last step
  std::optional<double> validation_loss_;
  RunTotals totals_;
  std::optional<double> startup_s_;  // until it is written with the first step
  RankTable ranks_;
  std::optional<base::Stopwatch> since_ranks_;
  std::vector<double> rates_;  // tokens per second of each step
  std::unique_ptr<train::MetricsLog> log_;
};

// The prediction for a run, made when training starts, in the form in which it is stored. Uses the
// recomputation policy chosen in `planned`. Memory and communication are those that `assay plan`
// computes for all ranks of the job; the memory of libraries is that of this device.
store::PlanRecord plan_record(const std::string& name, const spec::JobSpec& job,
                              const train::ExecutableStep& planned, const TrainingDevice& device);

}  // namespace assay::cli
