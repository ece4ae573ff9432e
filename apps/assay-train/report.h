// What a run says while it goes: a line that is redrawn on a terminal, rows otherwise, and a file
// of metrics, one JSON document per step.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "cli/verb.h"
#include "spec/job.h"
#include "train/mfu.h"
#include "train/trainer.h"

namespace assay::cli {

class RunReport : public train::Reporter {
 public:
  // Metrics are appended to out/metrics.jsonl: a resumed run goes on with the same file.
  static base::Result<std::unique_ptr<RunReport>> open(const Session& session,
                                                       const spec::JobSpec& job,
                                                       const std::filesystem::path& out,
                                                       std::int64_t memory_bytes);
  ~RunReport() override;
  RunReport(const RunReport&) = delete;
  RunReport& operator=(const RunReport&) = delete;

  void began(std::int64_t first_step, std::int64_t steps) override;
  void stepped(const train::StepReport& report) override;
  void saved(const std::filesystem::path& folder, std::int64_t bytes) override;
  void note(const std::string& line) override;

 private:
  RunReport(const Session& session, const spec::JobSpec& job, std::FILE* metrics,
            std::int64_t memory_bytes);
  void draw(const train::StepReport& report);
  void clear();
  [[nodiscard]] std::string facts(const train::StepReport& report) const;
  [[nodiscard]] std::string remaining(const train::StepReport& report) const;

  const Session& session_;
  std::FILE* metrics_;
  std::int64_t memory_bytes_;
  train::FlopsPerToken flops_;
  double peak_flops_ = 0;
  bool terminal_ = false;
  std::int64_t row_every_ = 1;
  std::int64_t first_step_ = 1;
  double smooth_seconds_ = 0;
};

}  // namespace assay::cli
