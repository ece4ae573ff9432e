// Ranks that are threads of one process: for tests, and for training on the CPUs of one machine.
// Results depend on what the ranks bring and on nothing else.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace assay::comm {

struct LocalOptions {
  // How long a rank waits for the others. Ranks that leave or abort are noticed at once; this is
  // for those that hang.
  std::chrono::milliseconds patience = std::chrono::minutes(10);
};

// One for each rank. A communicator that is destroyed has left: calls that need it fail.
std::vector<std::unique_ptr<Communicator>> make_local(int ranks, const LocalOptions& options = {});

// `body` once per rank, each on a thread of its own. A rank whose body fails aborts the others, and
// its error is what is returned.
base::Result<void> run_local(int ranks,
                             const std::function<base::Result<void>(Communicator&)>& body,
                             const LocalOptions& options = {});

}  // namespace assay::comm
