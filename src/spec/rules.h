// Rules between keys: what the type and range of a single key cannot check. Each function fills in
// the defaults that depend on other keys, then checks.
#pragma once

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

}  // namespace assay::spec
