// Communicators within one process: a single rank, and ranks that are threads, for tests and
// benchmarks. Results depend only on the ranks' inputs, never on timing.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace assay::comm {

// A group of one rank: every collective is a copy, or nothing.
std::unique_ptr<Communicator> make_single_rank();

struct LocalOptions {
  // How long a rank waits for the others. Ranks that exit or abort are noticed at once; this
  // timeout is for ranks that hang.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

// One communicator per rank. Destroying one fails later calls of the others.
std::vector<std::unique_ptr<Communicator>> make_local(int ranks, const LocalOptions& options = {});

// Runs `body` once per rank, each on its own thread. A rank whose body fails aborts the others; its
// error is returned.
base::Result<void> run_local(int ranks,
                             const std::function<base::Result<void>(Communicator&)>& body,
                             const LocalOptions& options = {});

}  // namespace assay::comm
