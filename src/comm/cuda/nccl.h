// Communicators whose ranks are processes with a GPU each, over NCCL.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "comm/communicator.h"
#include "comm/key_value.h"

namespace assay::comm {

struct NcclOptions {
  int rank = 0;
  int ranks = 1;
  int device = 0;  // of this process's GPUs
  // How long ranks wait for each other to connect, here and in each split.
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(1);
  // How long a call may take once this rank's part of it is ready. NCCL notices a rank that has
  // ended only if it talks to it over a network; this is for all others, and for ranks that hang.
  std::chrono::milliseconds call_timeout = std::chrono::minutes(10);
  // What a new group gathers once, so that NCCL connects the ways that large calls take and has its
  // memory before the rest is given away.
  std::int64_t first_bytes = std::int64_t{64} << 20U;
  // Whether the job has failed elsewhere. Asked while waiting, from several threads; may be empty.
  std::function<std::optional<base::Error>()> failed;
};

// Connects all ranks; every rank calls it. The store is needed until it returns. Memory is the
// device's: issuing a call queues it behind what the caller's stream holds, on a stream of the
// group's own, and waiting makes the caller's stream wait. Ranks' calls are not compared. Counts in
// device memory (Parts::on_device) are refused: NCCL needs them on the host. A failure or an abort
// is of this rank and of all its groups; that the other ranks learn of it is up to the caller.
base::Result<std::unique_ptr<Communicator>> connect_nccl(const NcclOptions& options,
                                                         KeyValue& store);

// The same with a library that has been found, or made by a test.
struct NcclLibrary;
base::Result<std::unique_ptr<Communicator>> connect_nccl(const NcclLibrary& nccl,
                                                         const NcclOptions& options,
                                                         KeyValue& store);

}  // namespace assay::comm
