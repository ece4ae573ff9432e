// Rules between keys: what the type and range of a single key cannot check. Each function fills in
// the defaults that depend on other keys, then checks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "spec/job.h"
#include "spec/value.h"

namespace assay::spec {

// `document` is the source of the section, so that messages can name file and line.
base::Result<void> complete(ModelSpec& model, const Value& document);
base::Result<void> complete(ClusterSpec& cluster, const Value& document);
// `path` names the row in messages: "price[2]".
base::Result<void> complete(PriceSpec& price, const Value& row, const std::string& path);

// A layout without a job: `ranks`, or the product of its degrees.
base::Result<void> complete(LayoutSpec& layout, const Value& document);

// The layout of a job: fills in dp and ranks from the cluster, then checks it against cluster and
// model. `ranks_from_layout`: ignores the number of devices in the cluster.
base::Result<void> complete_layout(JobSpec& job, const Value& document,
                                   bool ranks_from_layout = false);

// Checks the layout of a job against its cluster and model, for layouts that were generated rather
// than read, so that errors have no file and line. A dp of 0 means whatever the other degrees
// leave.
base::Result<void> check_layout(const JobSpec& job);

// Whether the pipeline schedule supports the number of micro-batches in a step: the interleaved one
// needs a multiple of layout.pp.
bool fills_pipeline(const LayoutSpec& layout, const BatchSpec& batch);

// Advice for a job whose layout is impossible; dp is 0 if the job did not set it.
using LayoutAdvice = std::function<std::string(const JobSpec&)>;

// The whole job: model and cluster are completed first, then the layout against the cluster or,
// with `ranks_from_layout`, by itself (see LoadOptions).
base::Result<void> complete(JobSpec& job, const Value& document, const LayoutAdvice& advice = {},
                            bool ranks_from_layout = false);

// Learning rate and warm-up of jobs that set none; docs/train.md gives the sources.
//
// The peak learning rate for AdamW: 3e-4 for a width of 4,096 and 4,194,304 tokens per step, as for
// Llama 3 8B; inversely proportional to the width, and proportional to the square root of the
// tokens. Rounded to two digits, at most 0.003.
double usual_learning_rate(std::int64_t dim, std::int64_t tokens_per_step);

// The steps needed to reach `rate` at the fastest safe rise (rules.cc), but at least the smaller of
// a tenth of the steps and 2,000, and at most a third of the steps. A run too short for that gets
// the rate that it can reach.
std::int64_t usual_warmup(std::int64_t dim, double rate, std::int64_t steps);

}  // namespace assay::spec
