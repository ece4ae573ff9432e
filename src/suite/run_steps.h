// Runs the steps of a suite, one after the other, each in processes of its own: one that fails
// keeps its output and the others go on.
#pragma once

#include <functional>
#include <vector>

#include "compare/process.h"
#include "suite/folder.h"

namespace assay::suite {

// Told before each step that is run: its place, from 1.
using StepWatcher = std::function<void(std::size_t place, const Step& step)>;

// One entry per step, in order. Steps that the folder has as done are not run again. After an
// interruption the rest is kNotReached. An error is of the folder, not of a step.
base::Result<std::vector<StepRun>> run_steps(const SuiteFolder& folder, const Here& here,
                                             const compare::Interrupts& interrupts,
                                             const StepWatcher& watcher = {});

// collective.cc: "all_reduce 1GB p4d-24xlarge 32 cluster.nodes=4", 32 being ranks and all of the
// cluster's if left out, and what follows written over the cluster: {"seconds", "bus_gb_s",
// "algorithm"} as the planner's network has it.
base::Result<base::Json> collective_json(std::string_view text);

}  // namespace assay::suite
