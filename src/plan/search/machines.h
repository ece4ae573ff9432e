// Machines: what a search may rent, and the offers for it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "spec/job.h"
#include "spec/load.h"

namespace assay::plan {

// Machines of one kind that can be rented together, up to cluster.max_nodes.
struct Machines {
  std::string name;
  spec::ClusterSpec cluster;
  spec::PriceList offers;
};

// The job's own cluster, called `name`, with the job's prices and those of `prices` that are for
// its device; and, if asked for, every other cluster preset with a GPU that is offered.
base::Result<std::vector<Machines>> machines_for(const spec::JobSpec& job, const std::string& name,
                                                 const spec::PriceList& prices, bool presets);

}  // namespace assay::plan
