// The plan before the first step and what became of it after the last, as text and as JSON.
#pragma once

#include "assay-train/device.h"
#include "assay-train/report.h"
#include "assay-train/telemetry.h"
#include "cli/verb.h"
#include "train/choose_recompute.h"
#include "train/trainer.h"

namespace assay::cli {

void print_plan(const Session& session, const train::Planned& planned, const Device& device);
void print_result(const Session& session, const train::Planned& planned, const Device& device,
                  const Telemetry& telemetry, const RunTotals& totals,
                  const train::RunResult& result);

}  // namespace assay::cli
