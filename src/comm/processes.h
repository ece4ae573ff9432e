// Communicators whose ranks are processes, on one machine or on several, with data in host memory.
#pragma once

#include <chrono>
#include <memory>

#include "comm/communicator.h"
#include "comm/connect.h"

namespace assay::comm {

struct ProcessGroupOptions : ConnectOptions {
  // How long a rank waits for the others in a call. Ranks that exit or abort are noticed at once;
  // this timeout is for ranks that hang.
  std::chrono::milliseconds call_timeout = std::chrono::minutes(10);
};

// Connects all ranks; every rank calls it. The store is needed until it returns.
base::Result<std::unique_ptr<Communicator>> connect_processes(const ProcessGroupOptions& options,
                                                              KeyValue& store);

}  // namespace assay::comm
