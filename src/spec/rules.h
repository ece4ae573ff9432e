// Rules between keys: what a single key's type and range cannot check. Each fills the defaults that
// depend on other keys, then checks.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "spec/job.h"
#include "spec/value.h"

namespace assay::spec {

// `document` is where the section was read from, so that messages can name file and line.
base::Result<void> complete(ModelSpec& model, const Value& document);
base::Result<void> complete(ClusterSpec& cluster, const Value& document);
// `path` names the row in messages: "price[2]".
base::Result<void> complete(PriceSpec& price, const Value& row, const std::string& path);

// A layout on its own: `ranks`, or else the product of its degrees.
base::Result<void> complete(LayoutSpec& layout, const Value& document);

// The layout of a job against its cluster and model, for layouts that were made rather than read:
// what a message is about has no place in a file. A dp of 0 is whatever the other degrees leave.
base::Result<void> check_layout(const JobSpec& job);

// Whether the pipeline's schedule can take as many micro-batches as a step has: the interleaved one
// takes them in groups of layout.pp.
bool fills_pipeline(const LayoutSpec& layout, const BatchSpec& batch);

// What to do about a job whose layout is impossible; its dp is 0 where it was not said.
using LayoutAdvice = std::function<std::string(const JobSpec&)>;

// The whole job; model and cluster are completed first, the layout against the cluster.
// `ranks_from_layout`: or the layout by itself, see LoadOptions.
base::Result<void> complete(JobSpec& job, const Value& document, const LayoutAdvice& advice = {},
                            bool ranks_from_layout = false);

}  // namespace assay::spec
