// Layouts: every way to spread a job over the devices of its cluster that the rules of spec allow,
// and the software that is to run it, and why the others are not possible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/model/software.h"
#include "spec/job.h"

namespace assay::plan {

// Layouts that are impossible for the same reason.
struct Rejection {
  std::string reason;
  std::int64_t count = 0;
};

struct Layouts {
  std::vector<spec::LayoutSpec> valid;
  std::vector<Rejection> rejected;  // counted by degrees: one per way to make the product
};

// On all devices of job.cluster; job.layout is ignored. `sequences` are read per optimizer
// step, and data ranks must share them evenly: no layout changes what a step is. 0: whatever
// divides. Run by our trainer, each is one that it executes with some micro-batch, which
// TrainerRules know.
//
// Schedules of pipelines are those that the framework has. Three kinds are left out for being
// never, or hardly ever, better than others: GPipe, which takes the time of 1F1B and more memory,
// tensor parallelism whose groups straddle nodes, and interleaved stages with chunks of different
// lengths. Stages of one chunk need not be equal.
Layouts layouts_of(const spec::JobSpec& job, std::int64_t sequences,
                   Framework framework = Framework::kAssay);

// What the ranks of job.layout read per step.
std::int64_t sequences_per_step(const spec::JobSpec& job);

// Ascending.
std::vector<std::int64_t> divisors_of(std::int64_t number);

struct Nearest {
  std::string broken;       // the rule, as text
  spec::LayoutSpec layout;  // the possible one that changes least
};

// Of an impossible job.layout; nothing when it is possible. One that our trainer executes with the
// job's batch, where it executes any. Degrees count by how often they are
// doubled or halved; the replicas, which fill what others leave, count half.
std::optional<Nearest> nearest_valid(const spec::JobSpec& job);

// "dp 2 x fsdp 4 zero 2 x tp 8 sp": degrees of 1 are left out.
std::string to_text(const spec::LayoutSpec& layout);

}  // namespace assay::plan
