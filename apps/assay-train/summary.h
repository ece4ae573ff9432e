// Prints the memory plan before the first step and the result after the last, as text and JSON.
#pragma once

#include "assay-train/device.h"
#include "assay-train/run_report.h"
#include "assay-train/step_metrics.h"
#include "cli/verb.h"
#include "train/planned_step.h"
#include "train/trainer.h"

namespace assay::cli {

void print_plan(const Session& session, const train::ExecutableStep& planned,
                const TrainingDevice& device);
void print_result(const Session& session, const train::ExecutableStep& planned,
                  const TrainingDevice& device, const Telemetry& telemetry, const RunReport& report,
                  const train::TrainingResult& result);

}  // namespace assay::cli
